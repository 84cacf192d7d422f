"""The arguments of the default evictor: which pods a profile may move at all.

Source: https://github.com/kubernetes-sigs/descheduler#evictor-plugin-configuration-default-evictor (names, defaults).
The rules themselves are beside this file; documents as a whole are read in ``policy``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from rebalancer.model.selector import EVERYTHING
from rebalancer.parse.argument_types import Count, Duration, Items, NodeLabels, Selector, choice
from rebalancer.parse.arguments import Arguments

CRITICAL_PRIORITY = 2_000_000_000
"""Pods at or above it are system critical; also the threshold where a policy names none."""


class Protection(StrEnum):
    """What keeps a pod where it is. The last two are ours; the rest are upstream's."""

    LOCAL_STORAGE = "PodsWithLocalStorage"
    DAEMON_SET = "DaemonSetPods"
    SYSTEM_CRITICAL = "SystemCriticalPods"
    FAILED_BARE = "FailedBarePods"
    PVC = "PodsWithPVC"
    WITHOUT_PDB = "PodsWithoutPDB"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"
    SAFE_TO_EVICT_FALSE = "PodsWithSafeToEvictFalse"
    DO_NOT_DISRUPT = "PodsWithDoNotDisrupt"


OWN_PROTECTIONS = (Protection.SAFE_TO_EVICT_FALSE, Protection.DO_NOT_DISRUPT)
DEFAULT_PROTECTIONS = (
    Protection.LOCAL_STORAGE,
    Protection.DAEMON_SET,
    Protection.SYSTEM_CRITICAL,
    Protection.FAILED_BARE,
    *OWN_PROTECTIONS,
)
EXTRA_PROTECTIONS = (Protection.PVC, Protection.WITHOUT_PDB, Protection.RESOURCE_CLAIMS)

DEPRECATED_DISABLING: Mapping[str, Protection] = MappingProxyType(
    {
        "evict_local_storage_pods": Protection.LOCAL_STORAGE,
        "evict_daemon_set_pods": Protection.DAEMON_SET,
        "evict_system_critical_pods": Protection.SYSTEM_CRITICAL,
        "evict_failed_bare_pods": Protection.FAILED_BARE,
    }
)
"""Deprecated booleans that switch a protection off."""

DEPRECATED_ENABLING: Mapping[str, Protection] = MappingProxyType(
    {"ignore_pvc_pods": Protection.PVC, "ignore_pods_without_pdb": Protection.WITHOUT_PDB}
)
"""Deprecated booleans that switch a protection on."""


class PriorityThreshold(Arguments):
    """Below which priority pods may be moved: a number, or the name of a priority class that is looked up at the start."""

    value: Annotated[int, Field(le=CRITICAL_PRIORITY)] | None = Field(
        None, description="Only pods with a priority below this are moved; at most 2000000000."
    )
    name: str = Field("", description="A PriorityClass whose value is used.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse a number beside a name."""
        if self.value is not None and self.name:
            yield ("value", "name"), "only one of value and name may be set"


class StorageClass(Arguments):
    """One storage class."""

    name: str = Field(min_length=1, description="Name of the storage class.")


class PVCProtection(Arguments):
    """How PodsWithPVC chooses."""

    protected_storage_classes: Items[StorageClass] = Field(
        (), description="Protect only claims of these classes, and those of none; all claims where not given."
    )


class ProtectionConfig(Arguments):
    """Settings of single protections."""

    pods_with_pvc: PVCProtection = Field(
        PVCProtection(), alias="PodsWithPVC", description="Which claims make PodsWithPVC protect a pod."
    )


class PodProtections(Arguments):
    """Which protections hold."""

    default_disabled: Items[Annotated[str, choice(*DEFAULT_PROTECTIONS)]] = Field(
        (), description="Protections to switch off: " + ", ".join(DEFAULT_PROTECTIONS) + "."
    )
    extra_enabled: Items[Annotated[str, choice(*EXTRA_PROTECTIONS)]] = Field(
        (), description="Protections to switch on: " + ", ".join(EXTRA_PROTECTIONS) + "."
    )
    config: ProtectionConfig = Field(ProtectionConfig(), description="Settings of single protections.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse a protection that is listed twice."""
        for field, listed in (("default_disabled", self.default_disabled), ("extra_enabled", self.extra_enabled)):
            for name in sorted({name for name in listed if listed.count(name) > 1}):
                alias = type(self).model_fields[field].alias
                yield (field,), f"{name} is listed twice in {alias}"


class DefaultEvictorArgs(Arguments):
    """Arguments of DefaultEvictor, for one profile."""

    node_selector: NodeLabels = Field(
        EVERYTHING, description="Nodes that count as a destination for nodeFit (a label selector as text); all where empty."
    )
    label_selector: Selector | None = Field(None, description="Only pods that it matches are moved.")
    namespace_label_selector: Selector | None = Field(None, description="Only pods of namespaces that it matches.")
    priority_threshold: PriorityThreshold = Field(
        PriorityThreshold(), description="Only pods below this priority are moved; 2000000000 where not given."
    )
    node_fit: bool | None = Field(
        None,
        description="true: only pods that fit another node are moved. false: no destination and no gain is asked for in any "
        "mode. Not given: as the placement setting says.",
    )
    min_replicas: Count = Field(0, description="Only pods whose owner has at least this many live, ready pods (pods; from 2 on).")
    min_pod_age: Duration | None = Field(None, description="Only pods that started at least this long ago (duration).")
    no_eviction_policy: Annotated[str, choice("", "Preferred", "Mandatory")] = Field(
        "",
        description="What the annotation prefer-no-eviction does: Preferred sorts last among equals, Mandatory protects.",
    )
    pod_protections: PodProtections = Field(PodProtections(), description="Which protections hold.")
    evict_local_storage_pods: bool = Field(False, description="Deprecated: switches PodsWithLocalStorage off.")
    evict_daemon_set_pods: bool = Field(False, description="Deprecated: switches DaemonSetPods off.")
    evict_system_critical_pods: bool = Field(False, description="Deprecated: switches SystemCriticalPods off.")
    evict_failed_bare_pods: bool = Field(False, description="Deprecated: switches FailedBarePods off.")
    ignore_pvc_pods: bool = Field(False, description="Deprecated: switches PodsWithPVC on.")
    ignore_pods_without_pdb: bool = Field(
        False, alias="ignorePodsWithoutPDB", description="Deprecated: switches PodsWithoutPDB on."
    )

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse a deprecated boolean beside the lists that replaced it; the names that are ours were in no boolean."""
        fields = type(self).model_fields
        old = [name for name in (*DEPRECATED_DISABLING, *DEPRECATED_ENABLING) if getattr(self, name)]
        new = [*self.pod_protections.default_disabled, *self.pod_protections.extra_enabled]
        if old and any(name not in OWN_PROTECTIONS for name in new):
            listed = ", ".join(str(fields[name].alias) for name in old)
            yield (*old, "pod_protections"), f"{listed} may not be set beside podProtections"

    def cautions(self) -> Iterator[str]:
        """Name deprecated booleans with what to write instead, and settings without effect."""
        fields = type(self).model_fields
        for name, protection in DEPRECATED_DISABLING.items():
            if getattr(self, name):
                yield f"{fields[name].alias} is deprecated: write {protection} in podProtections.defaultDisabled"
        for name, protection in DEPRECATED_ENABLING.items():
            if getattr(self, name):
                yield f"{fields[name].alias} is deprecated: write {protection} in podProtections.extraEnabled"
        if self.pod_protections.config.pods_with_pvc.protected_storage_classes and not self.protects(Protection.PVC):
            yield "podProtections.config.PodsWithPVC has no effect: PodsWithPVC is not in extraEnabled"
        if self.min_replicas == 1:
            yield "minReplicas 1 has no effect: every pod has at least itself"

    @property
    def protections(self) -> frozenset[Protection]:
        """The protections that hold, deprecated booleans included."""
        off = {Protection(name) for name in self.pod_protections.default_disabled}
        off |= {protection for name, protection in DEPRECATED_DISABLING.items() if getattr(self, name)}
        on = {Protection(name) for name in self.pod_protections.extra_enabled}
        on |= {protection for name, protection in DEPRECATED_ENABLING.items() if getattr(self, name)}
        return frozenset((set(DEFAULT_PROTECTIONS) - off) | on)

    def protects(self, protection: Protection) -> bool:
        """Tell whether a protection holds."""
        return protection in self.protections

    @property
    def protected_storage_classes(self) -> tuple[str, ...]:
        """The only storage classes that PodsWithPVC protects; empty for all."""
        return tuple(item.name for item in self.pod_protections.config.pods_with_pvc.protected_storage_classes)

    @property
    def no_eviction_is_mandatory(self) -> bool:
        """Tell whether the annotation prefer-no-eviction protects, instead of only sorting last."""
        return self.no_eviction_policy == "Mandatory"

    @property
    def priority_below(self) -> int:
        """The priority below which pods may be moved.

        Raises LookupError while the threshold is a name that nobody has looked up.
        """
        if self.priority_threshold.name:
            raise LookupError(f"priority class {self.priority_threshold.name!r} has not been looked up")
        value = self.priority_threshold.value
        return CRITICAL_PRIORITY if value is None else value

    def canonical(self) -> dict[str, Any]:
        """Return the arguments as a document writes them, deprecated booleans replaced by the lists that mean the same."""
        document = self.to_dict()
        for name in (*DEPRECATED_DISABLING, *DEPRECATED_ENABLING):
            document.pop(str(type(self).model_fields[name].alias), None)
        holding = self.protections
        protections = {
            "defaultDisabled": [str(name) for name in DEFAULT_PROTECTIONS if name not in holding],
            "extraEnabled": [str(name) for name in EXTRA_PROTECTIONS if name in holding],
            "config": document.pop("podProtections", {}).get("config"),
        }
        if kept := {key: value for key, value in protections.items() if value}:
            document["podProtections"] = kept
        return document
