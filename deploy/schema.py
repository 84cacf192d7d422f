"""The schema of the chart's values: what Helm refuses before anything is rendered, a misspelt key above all.

Objects of the Kubernetes API are checked down to the keys of their first level; the API server knows the rest. The part
about settings is made from the settings themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rebalancer.policy import policy_variables
from rebalancer.settings import SettingRow, reference_rows

Schema = dict[str, Any]

PREFIX = "REBALANCER_"
POLICY_PREFIXES = ("STRATEGIES", "STRATEGY__", "POLICY__")
# Upstream's flags: https://github.com/kubernetes-sigs/descheduler/blob/v0.36.0/docs/cli/descheduler.md, those of 0.18 added.
_FLAGS = """
    alsologtostderr bind-address cert-dir client-connection-burst client-connection-kubeconfig client-connection-qps
    descheduling-interval disable-http2-serving disable-metrics dry-run enable-http2 evict-local-storage-pods feature-gates
    http2-max-streams-per-connection kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline
    leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period
    log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
    logging-format logtostderr max-pods-to-evict-per-node node-selector otel-collector-endpoint
    otel-fallback-no-op-on-error otel-sample-rate otel-service-name otel-trace-namespace otel-transport-ca-cert
    permit-address-sharing permit-port-sharing policy-config-file secure-port stderrthreshold tls-cert-file
    tls-cipher-suites tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key v vmodule
"""
FLAGS = tuple(_FLAGS.split())
PROBE = "failureThreshold httpGet initialDelaySeconds periodSeconds successThreshold terminationGracePeriodSeconds timeoutSeconds"
SECURITY = """
    allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem runAsGroup
    runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions
"""
POD_SECURITY = """
    appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy seLinuxOptions
    seccompProfile supplementalGroups supplementalGroupsPolicy sysctls windowsOptions
"""

TEXT: Schema = {"type": ["string", "null"]}
SWITCH: Schema = {"type": ["boolean", "null"]}
COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
DURATION: Schema = {"type": ["string", "integer", "null"], "pattern": r"^([0-9.]+|([0-9.]+(ms|s|m|h))+)?$"}
COUNT_OR_PERCENT: Schema = {"type": ["string", "integer", "null"], "pattern": "^([0-9]+%?)?$"}
TEXTS: Schema = {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}}
ITEMS: Schema = {"type": ["array", "null"], "items": {"type": "object"}}
WORDS: Schema = {"type": ["array", "null"], "items": {"type": "string"}}


def keys(properties: dict[str, Schema]) -> Schema:
    """Return the schema of an object that has these keys and no others."""
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


def some_of(names: str) -> Schema:
    """Return the schema of an object of the Kubernetes API, by the names of its first level."""
    return keys({name: {} for name in names.split()})


def each(names: str, schema: Schema) -> dict[str, Schema]:
    """Return one schema for several keys."""
    return dict.fromkeys(names.split(), schema)


def choice(*words: str) -> Schema:
    """Return the schema of one of several words; empty and null are none of them."""
    return {"enum": [*words, "", None]}


def setting(row: SettingRow) -> Schema:
    """Return the schema of one setting, judged by the words of its type; null and empty leave the default."""
    note = {"description": f"{row.name}: {row.description}"}
    if row.name == f"{PREFIX}LISTEN_PORT":
        return {"type": ["integer", "null"], "minimum": 1, "maximum": 65535, **note}
    if row.type == "true or false":
        return {"enum": [True, False, "true", "false", "", None], **note}
    if row.type == "number":
        return {"type": ["number", "string", "null"], "minimum": 0, "pattern": r"^([0-9]+(\.[0-9]+)?)?$", **note}
    if row.type == "whole number":
        return {"type": ["integer", "string", "null"], "minimum": 0, "pattern": "^[0-9]*$", **note}
    if row.type == "whole number, or none":
        return {"type": ["integer", "string", "null"], "minimum": 0, "pattern": "^([0-9]+|none)?$", **note}
    if row.type == "number or percentage, or none":
        return {"type": ["integer", "string", "null"], "minimum": 0, "pattern": r"^([0-9]+|[0-9]+(\.[0-9]+)?%|none)?$", **note}
    if row.type == "list":
        return {"type": ["array", "string", "null"], "items": {"type": "string"}, **note}
    if row.type == "JSON list":
        return {"type": ["array", "string", "null"], "items": {"type": "object"}, **note}
    if row.type == "text":
        return {"type": ["string", "null"], **note}
    words = row.type.split(", ")
    # YAML reads the word off as false.
    return {"enum": [*words, *([False] if "off" in words else []), "", None], **note}


def value_name(variable: str) -> str:
    """Return the name among the chart's settings of an environment variable: REBALANCER_TICK_SECONDS is tickSeconds."""
    first, *rest = variable.removeprefix(PREFIX).lower().split("_")
    return first + "".join(part.capitalize() for part in rest)


def setting_schemas(rows: Iterable[SettingRow]) -> dict[str, Schema]:
    """Return the schema of every setting, by its name among the chart's values."""
    return {value_name(row.name): setting(row) for row in rows}


def values_schema() -> Schema:
    """Return the whole schema."""
    properties: dict[str, Schema] = {
        "kind": {"enum": ["Deployment", "CronJob", "Job"]},
        "replicas": {"type": ["integer", "null"], "minimum": 0},
        "image": keys({"repository": TEXT, "tag": TEXT, "digest": TEXT, "pullPolicy": choice("Always", "IfNotPresent", "Never")}),
        "imagePullSecrets": ITEMS,
        "deschedulerPolicyAPIVersion": {"enum": ["descheduler/v1alpha2", "descheduler/v1alpha1"]},
        "deschedulerPolicy": {"type": ["object", "null"]},
        "policyVariables": keys({name.removeprefix(PREFIX): {} for name in policy_variables()}),
        "restartOnPolicyChange": SWITCH,
        "settings": keys(setting_schemas(reference_rows())),
        "extraEnv": ITEMS,
        "extraEnvFrom": ITEMS,
        "command": WORDS,
        "cmdOptions": keys({name: {"type": ["string", "number", "boolean", "null"]} for name in FLAGS}),
        "deschedulingInterval": DURATION,
        "leaderElection": keys(
            {
                "enabled": SWITCH,
                "leaseDuration": DURATION,
                "renewDeadline": DURATION,
                "retryPeriod": DURATION,
                "resourceLock": TEXT,
                "resourceName": TEXT,
                "resourceNamespace": TEXT,
                # Spelt so in comments of charts up to 0.27.
                "resourceNamescape": TEXT,
            }
        ),
        "schedule": {"type": "string", "pattern": r"^(@[a-z]+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)$"},
        "timeZone": TEXT,
        "suspend": SWITCH,
        **each(
            "startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit ttlSecondsAfterFinished "
            "activeDeadlineSeconds backoffLimit terminationGracePeriodSeconds",
            COUNT,
        ),
        "cronJobApiVersion": TEXT,
        "resources": some_of("requests limits claims"),
        "securityContext": some_of(SECURITY),
        "podSecurityContext": some_of(POD_SECURITY),
        **each("priorityClassName schedulerName runtimeClassName", TEXT),
        "hostUsers": SWITCH,
        "nodeSelector": TEXTS,
        "affinity": some_of("nodeAffinity podAffinity podAntiAffinity"),
        "topologySpreadConstraints": ITEMS,
        "tolerations": ITEMS,
        "dnsConfig": some_of("nameservers options searches"),
        **each(
            "initContainers extraVolumes extraVolumeMounts extraServiceAccountVolumes extraServiceAccountVolumeMounts ports",
            ITEMS,
        ),
        **each("livenessProbe readinessProbe startupProbe", some_of(PROBE)),
        "rbac": keys({"create": SWITCH, "tokenReviews": SWITCH}),
        "serviceAccount": keys({"create": SWITCH, "name": TEXT, "annotations": TEXTS, "automountServiceAccountToken": SWITCH}),
        "automountServiceAccountToken": SWITCH,
        "podDisruptionBudget": keys(
            {
                "enabled": SWITCH,
                "minAvailable": COUNT_OR_PERCENT,
                "maxUnavailable": COUNT_OR_PERCENT,
                "unhealthyPodEvictionPolicy": choice("AlwaysAllow", "IfHealthyBudget"),
                "annotations": TEXTS,
            }
        ),
        "service": keys(
            {
                "enabled": SWITCH,
                "ipFamilyPolicy": choice("SingleStack", "PreferDualStack", "RequireDualStack"),
                "ipFamilies": {"type": ["array", "null"], "items": {"enum": ["IPv4", "IPv6"]}},
            }
        ),
        "serviceMonitor": keys(
            {
                "enabled": SWITCH,
                "apiVersion": TEXT,
                "namespace": TEXT,
                "additionalLabels": TEXTS,
                "interval": TEXT,
                "honorLabels": SWITCH,
                "insecureSkipVerify": SWITCH,
                "serverName": TEXT,
                "metricRelabelings": ITEMS,
                "relabelings": ITEMS,
            }
        ),
        "prometheusRule": keys({"enabled": SWITCH, "namespace": TEXT, "additionalLabels": TEXTS, "runbookURL": TEXT}),
        "grafanaDashboard": keys({"enabled": SWITCH, "namespace": TEXT, "labels": TEXTS, "annotations": TEXTS}),
        "networkPolicy": keys(
            {
                "enabled": SWITCH,
                "ingressFrom": ITEMS,
                "apiServerPorts": {"type": "array", "items": {"type": "integer"}},
                "apiServerBlocks": WORDS,
                "extraEgress": ITEMS,
            }
        ),
        **each("nameOverride fullnameOverride namespaceOverride", TEXT),
        **each(
            "commonLabels deploymentAnnotations cronJobAnnotations cronJobLabels jobAnnotations jobLabels "
            "podAnnotations podLabels",
            TEXTS,
        ),
        "podSecurityPolicy": keys({"create": SWITCH}),
        # Helm's own: values that a parent chart hands to all its charts.
        "global": {"type": ["object", "null"]},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the rebalancer chart",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
