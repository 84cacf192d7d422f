"""Every setting, grouped by subject: its name, type, default, unit and meaning. The reference is made from these models.

A setting is the environment variable ``REBALANCER_`` plus the field's name in capitals; names are unique over all groups.
An empty value counts as not set. No field is called ``port`` or ``service_...``: for a Service named rebalancer Kubernetes
sets such variables by itself.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from rebalancer.model.cap import Cap
from rebalancer.settings.types import (
    CapOrNone,
    FromJSON,
    InSmallLetters,
    LimitOrNone,
    Names,
    OffIsFalse,
    Seconds,
    SecondsOrNone,
)
from rebalancer.settings.windows import WindowSetting

PREFIX = "REBALANCER_"


class Group(BaseSettings):
    """The base of a group: frozen, and made of what it is given alone; the environment is read by ``load_settings``."""

    title: ClassVar[str] = ""
    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix=PREFIX, env_ignore_empty=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Leave the process's own environment out, so that a value never depends on where it was made."""
        return (init_settings,)


class ModeSettings(Group):
    """Whether it evicts, and how sure it has to be of a gain."""

    title: ClassVar[str] = "Mode"
    dry_run: Annotated[Literal["off", "plan", "server"], OffIsFalse] = Field(
        "off",
        description="off: evict. plan: report only. server: send each eviction with dryRun=All, so that budgets, admission and "
        "permissions are tried for real while nothing goes. false is read as off.",
    )
    placement: Annotated[Literal["required", "fit", "off"], OffIsFalse] = Field(
        "required",
        description="required: move a pod only where it improves on nearly every node it may land on. fit: only where it fits "
        "another node. off: the policy's nodeFit alone decides. false is read as off.",
    )
    single_replica: Literal["auto", "evict", "skip", "surge"] = Field(
        "auto",
        description="What to do with the only replica of a workload. evict it, skip it, or surge: start the replacement first by "
        "a rollout of its Deployment; where that cannot be, it stays. auto: skip where a PodDisruptionBudget forbids it, else "
        "evict.",
    )
    protected_namespaces: Names = Field(
        ("kube-system",), description="Namespaces whose pods are never evicted, whatever the policy says; [] for none."
    )
    background_evictions: bool = Field(
        False, description="Understand evictions that another controller completes later (request-evict-only)."
    )


class PolicySettings(Group):
    """Where the policy comes from; without a file it is made of REBALANCER_STRATEGIES and its fellows."""

    title: ClassVar[str] = "Policy"
    policy_file: str | None = Field(None, description="Path of the DeschedulerPolicy document.")
    policy_check_seconds: Seconds = Field(
        5.0, description="How often the policy file is looked at for a change; a bad new version is reported and not used."
    )


class TriggerSettings(Group):
    """When it looks again."""

    title: ClassVar[str] = "Triggers"
    debounce_quiet_seconds: SecondsOrNone = Field(
        5.0, description="A run starts when no trigger has come for this long, so that one change of many parts is one run."
    )
    debounce_maximum_seconds: Seconds = Field(
        60.0, description="A run starts at the latest this long after the first trigger, however many follow."
    )
    tick_seconds: Seconds = Field(300.0, description="A run starts at least this often; age and restarts trigger nothing else.")
    node_settle_seconds: SecondsOrNone = Field(
        10.0, description="A new node is looked at this long after it became Ready, when its DaemonSets have started."
    )
    run_deadline_seconds: Seconds = Field(600.0, description="A run ends at the latest after this time.")


class CapSettings(Group):
    """How much it may evict. Limits of the policy hold as well; the tighter wins."""

    title: ClassVar[str] = "Caps"
    cap_node: CapOrNone = Field(
        Cap(number=3), description="Most evictions per run from one node: a number, or a percentage of the node's pods."
    )
    cap_namespace: CapOrNone = Field(
        None, description="Most evictions per run from one namespace: a number, or a percentage of the namespace's pods."
    )
    cap_workload: CapOrNone = Field(
        None, description="Most evictions per run from one workload: a number, or a percentage of its replicas."
    )
    cap_total: CapOrNone = Field(
        Cap(number=20), description="Most evictions per run in all: a number, or a percentage of all pods."
    )
    evictions_per_minute: LimitOrNone = Field(10, description="Most evictions in any 60 seconds.")
    max_in_flight: Annotated[int, Field(ge=1)] = Field(
        5, description="Most evictions whose replacements are not Ready yet, at any time."
    )
    max_in_flight_per_workload: Annotated[int, Field(ge=1)] = Field(
        1, description="The same for one workload, so that its replicas never go together."
    )


class EvictionSettings(Group):
    """How an eviction is sent and followed."""

    title: ClassVar[str] = "Evictions"
    eviction_timeout_seconds: Seconds = Field(
        3.0, description="How long an eviction request may take. None starts with less than that left on the lease."
    )
    settle_timeout_seconds: Seconds = Field(
        300.0, description="How long a replacement may take to become Ready before its workload is left alone for the run."
    )
    cooldown_seconds: Seconds = Field(
        600.0, description="How long an owner is not moved off a node again after a move that did not help; doubles each time."
    )
    cooldown_maximum_seconds: Seconds = Field(21_600.0, description="The longest a cooldown grows.")
    events: bool = Field(True, description="Write Events on evicted pods and their owners.")


class PauseSettings(Group):
    """When it keeps still."""

    title: ClassVar[str] = "Pauses and windows"
    windows: Annotated[tuple[WindowSetting, ...], NoDecode, FromJSON] = Field(
        (),
        description='Evict only in these windows: a JSON list of {"cron": "0 22 * * *", "duration": "6h", "timeZone": '
        '"Europe/Berlin", "profiles": [...]}. Always where empty.',
    )
    blackouts: Annotated[tuple[WindowSetting, ...], NoDecode, FromJSON] = Field(
        (), description="Never evict in these windows, of the same form; they win over the others."
    )
    pause_pending_pods: CapOrNone = Field(
        None, description="Keep still while more pods than this are Pending: a number, or a percentage of all pods."
    )
    pause_not_ready_nodes: CapOrNone = Field(
        None, description="Keep still while more nodes than this are NotReady: a number, or a percentage of all nodes."
    )


class LeaseSettings(Group):
    """Which of several replicas works. Times keep their order: duration, then renew, then retry."""

    title: ClassVar[str] = "Leadership"
    leader_election: bool = Field(True, description="Work only while holding the lease.")
    lease_name: str = Field(
        "descheduler",
        min_length=1,
        description="Name of the Lease; the descheduler's own, so that both cannot work at the same time.",
    )
    lease_namespace: str = Field(
        "kube-system", min_length=1, description="Namespace of the Lease and of the ConfigMap with what must be remembered."
    )
    lease_duration_seconds: Seconds = Field(15.0, description="How long others wait for a holder that is silent.")
    lease_renew_seconds: Seconds = Field(10.0, description="A holder that could not renew for this long gives up.")
    lease_retry_seconds: Seconds = Field(2.0, description="Time between two attempts to acquire or renew.")
    state_name: str = Field(
        "rebalancer-state", min_length=1, description="Name of the ConfigMap with cooldowns and counts that outlive a restart."
    )


class WatchSettings(Group):
    """When what is known counts as too old to act on."""

    title: ClassVar[str] = "Freshness"
    stale_disconnected_seconds: Seconds = Field(
        10.0, description="Nothing is evicted while a watch has been disconnected for longer than this."
    )
    stale_silent_seconds: Seconds = Field(
        90.0, description="Nothing is evicted while a watch has said nothing, not even a bookmark, for longer than this."
    )


class ServingSettings(Group):
    """Probes, metrics, status, logs and traces."""

    title: ClassVar[str] = "Serving and logging"
    listen_address: str = Field("0.0.0.0", min_length=1, description="Address for probes, metrics and status (HTTP).")
    listen_port: Annotated[int, Field(ge=0, le=65535)] = Field(8080, description="Its port; 0 for any free one.")
    metrics_need_token: bool = Field(False, description="Serve metrics only with a bearer token that passes a review.")
    descheduler_metrics: bool = Field(True, description="Serve metrics under the descheduler's names, beside our own.")
    log_level: Annotated[Literal["debug", "info", "warning", "error"], InSmallLetters] = Field(
        "info", description="From which level on is logged."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", description="json: an object per line. console: for people. auto: console on a terminal, else json."
    )
    otlp_endpoint: str | None = Field(None, description="Where traces are sent (OTLP over HTTP); needs the extra otel.")


class ClusterSettings(Group):
    """Which cluster, and how its pods are scheduled."""

    title: ClassVar[str] = "Cluster"
    kubeconfig: str | None = Field(
        None, description="Path of a kubeconfig; inside a cluster its service account is used where not given."
    )
    kube_context: str | None = Field(None, description="Context of the kubeconfig; its current one where not given.")
    scheduler_config_file: str | None = Field(
        None,
        description="Path of the KubeSchedulerConfiguration that kube-scheduler runs with; its defaults where not given.",
    )
