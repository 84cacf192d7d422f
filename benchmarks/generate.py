"""Clusters of any size, the same for the same seed: objects as an API server sends them, managed fields and all.

A pod comes out at some six kilobytes of JSON, as in real clusters: managedFields, projected token volume, default tolerations,
conditions, container statuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

ZONES = ("eu-1a", "eu-1b", "eu-1c")
NODE_CPU, NODE_MEMORY_KI = 16, 64 * 2**20


@dataclass(frozen=True, slots=True)
class Size:
    """How large a cluster is.

    owners: ReplicaSets that share the pods; as many as pods means that no two pods have anything in common.
    namespaces: they are spread over these. seed: equal seeds give equal clusters.
    """

    nodes: int
    pods: int
    owners: int
    namespaces: int = 50
    seed: int = 1


def _uid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))


def _time(random: Random) -> str:
    return f"2026-{random.randint(1, 11):02}-{random.randint(1, 28):02}T{random.randint(0, 23):02}:{random.randint(0, 59):02}:00Z"


def _managed(manager: str, when: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": when,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": subresource} if subresource else {})


_POD_FIELDS: dict[str, Any] = {
    "f:metadata": {
        "f:annotations": {".": {}, "f:checksum/config": {}},
        "f:generateName": {},
        "f:labels": {".": {}, "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/instance": {}, "f:pod-template-hash": {}},
        "f:ownerReferences": {".": {}, 'k:{"uid":"00000000-0000-0000-0000-000000000000"}': {}},
    },
    "f:spec": {
        "f:containers": {
            'k:{"name":"app"}': {
                ".": {},
                "f:env": {".": {}, 'k:{"name":"POD_NAME"}': {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}}},
                "f:image": {},
                "f:imagePullPolicy": {},
                "f:livenessProbe": {".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}}},
                "f:name": {},
                "f:ports": {".": {}, 'k:{"containerPort":8080,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                "f:resources": {
                    ".": {},
                    "f:limits": {".": {}, "f:memory": {}},
                    "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
                },
                "f:terminationMessagePath": {},
                "f:terminationMessagePolicy": {},
            }
        },
        "f:dnsPolicy": {},
        "f:enableServiceLinks": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
        "f:securityContext": {},
        "f:serviceAccount": {},
        "f:serviceAccountName": {},
        "f:terminationGracePeriodSeconds": {},
        "f:topologySpreadConstraints": {".": {}, 'k:{"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}': {".": {}}},
    },
}
_STATUS_FIELDS: dict[str, Any] = {
    "f:status": {
        "f:conditions": {
            f'k:{{"type":"{kind}"}}': {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
            for kind in ("PodReadyToStartContainers", "ContainersReady", "Initialized", "Ready")
        },
        "f:containerStatuses": {},
        "f:hostIP": {},
        "f:hostIPs": {},
        "f:phase": {},
        "f:podIP": {},
        "f:podIPs": {".": {}, 'k:{"ip":"10.0.0.1"}': {".": {}, "f:ip": {}}},
        "f:startTime": {},
    }
}


class Cluster:
    """One generated cluster: nodes, namespaces, owners, budgets, and pods on demand."""

    def __init__(self, size: Size) -> None:
        """Draw what the pods will refer to."""
        self.size = size
        random = Random(size.seed)
        self._random = random
        self.namespaces = [f"team-{number:03}" for number in range(size.namespaces)]
        self.node_names = [f"node-{number:05}.internal" for number in range(size.nodes)]
        self._owner_uids = [_uid(random) for _ in range(size.owners)]
        self._cpu = [random.choice((50, 100, 250, 500, 1000)) for _ in range(size.owners)]
        self._memory = [random.choice((64, 128, 256, 512, 1024)) for _ in range(size.owners)]

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Yield the nodes."""
        for number, name in enumerate(self.node_names):
            zone = ZONES[number % len(ZONES)]
            when = _time(self._random)
            amounts = {"cpu": str(NODE_CPU), "memory": f"{NODE_MEMORY_KI}Ki", "pods": "110", "ephemeral-storage": "100Gi"}
            yield {
                "kind": "Node",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "uid": _uid(self._random),
                    "resourceVersion": str(1000 + number),
                    "creationTimestamp": when,
                    "labels": {
                        "kubernetes.io/hostname": name,
                        "kubernetes.io/os": "linux",
                        "kubernetes.io/arch": "amd64",
                        "node.kubernetes.io/instance-type": "m6.4xlarge",
                        "topology.kubernetes.io/region": "eu-1",
                        "topology.kubernetes.io/zone": zone,
                    },
                },
                "spec": {"providerID": f"aws:///{zone}/i-{number:017x}"},
                "status": {
                    "capacity": amounts,
                    "allocatable": amounts,
                    "conditions": [
                        {
                            "type": kind,
                            "status": status,
                            "lastHeartbeatTime": when,
                            "lastTransitionTime": when,
                            "reason": "Kubelet",
                        }
                        for kind, status in (
                            ("MemoryPressure", "False"),
                            ("DiskPressure", "False"),
                            ("PIDPressure", "False"),
                            ("Ready", "True"),
                        )
                    ],
                    "images": [
                        {
                            "names": [
                                f"registry.test/team/app-{image:03}@sha256:{image:064x}",
                                f"registry.test/team/app-{image:03}:1",
                            ],
                            "sizeBytes": 10_000_000 + image,
                        }
                        for image in range(number % 7, number % 7 + 20)
                    ],
                },
            }

    def pod(self, number: int, node: str | None = None, version: int | None = None) -> dict[str, Any]:
        """Return one pod. node: where it runs, drawn from the number where it is left out."""
        size, owner = self.size, number % self.size.owners
        random = Random(size.seed * 1_000_003 + number)
        app, namespace = f"app-{owner:05}", self.namespaces[owner % size.namespaces]
        hash_, when = f"{owner:010x}", _time(random)
        name = f"{app}-{hash_}-{number:05x}"
        node = node or self.node_names[number % size.nodes]
        uid, image = _uid(random), f"registry.test/team/app-{owner % 200:03}:1"
        ip = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        labels = {"app.kubernetes.io/name": app, "app.kubernetes.io/instance": f"{app}-prod", "pod-template-hash": hash_}
        token = f"kube-api-access-{number:05x}"
        probes = {
            name: {"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
            for name, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz"))
        }
        field = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
        mounts = [{"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
        container = {
            "name": "app",
            "image": image,
            "args": ["--listen=0.0.0.0:8080", "--log-level=info"],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
            ],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {
                "limits": {"memory": f"{self._memory[owner] * 2}Mi"},
                "requests": {"cpu": f"{self._cpu[owner]}m", "memory": f"{self._memory[owner]}Mi"},
            },
            "volumeMounts": mounts,
            **probes,
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
            "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
        }
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "generateName": f"{app}-{hash_}-",
                "namespace": namespace,
                "uid": uid,
                "resourceVersion": str(version or 1_000_000 + number),
                "generation": 1,
                "creationTimestamp": when,
                "labels": labels,
                "annotations": {"checksum/config": f"{owner:064x}"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": f"{app}-{hash_}",
                        "uid": self._owner_uids[owner],
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
                "managedFields": [
                    _managed("kube-controller-manager", when, _POD_FIELDS),
                    _managed("kubelet", when, _STATUS_FIELDS, "status"),
                ],
            },
            "spec": {
                "volumes": [
                    {
                        "name": token,
                        "projected": {
                            "sources": [
                                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                                {"downwardAPI": {"items": [{"path": "namespace"} | field]}},
                            ],
                            "defaultMode": 420,
                        },
                    },
                    {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
                ],
                "containers": [container],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "serviceAccountName": app,
                "serviceAccount": app,
                "nodeName": node,
                "securityContext": {"fsGroup": 1000},
                "schedulerName": "default-scheduler",
                "tolerations": [
                    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                    for taint in ("not-ready", "unreachable")
                ],
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}},
                    }
                ],
                "priority": 0,
                "enableServiceLinks": True,
                "preemptionPolicy": "PreemptLowerPriority",
            },
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": when}
                    for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
                ],
                "hostIP": "192.168.0.1",
                "hostIPs": [{"ip": "192.168.0.1"}],
                "podIP": ip,
                "podIPs": [{"ip": ip}],
                "startTime": when,
                "containerStatuses": [
                    {
                        "name": "app",
                        "state": {"running": {"startedAt": when}},
                        "lastState": {},
                        "ready": True,
                        "restartCount": 0,
                        "image": image,
                        "imageID": f"registry.test/team/app@sha256:{owner:064x}",
                        "containerID": f"containerd://{number:064x}",
                        "started": True,
                        "volumeMounts": mounts,
                    }
                ],
                "qosClass": "Burstable",
            },
        }

    def pods(self) -> Iterator[dict[str, Any]]:
        """Yield all pods."""
        for number in range(self.size.pods):
            yield self.pod(number)

    def owners(self) -> Iterator[dict[str, Any]]:
        """Yield the ReplicaSets that own the pods."""
        share, rest = divmod(self.size.pods, self.size.owners)
        for owner, uid in enumerate(self._owner_uids):
            app, replicas = f"app-{owner:05}", share + (1 if owner < rest else 0)
            labels = {"app.kubernetes.io/name": app, "pod-template-hash": f"{owner:010x}"}
            yield {
                "kind": "ReplicaSet",
                "apiVersion": "apps/v1",
                "metadata": {
                    "name": f"{app}-{owner:010x}",
                    "namespace": self.namespaces[owner % self.size.namespaces],
                    "uid": uid,
                    "resourceVersion": str(10_000 + owner),
                    "generation": 1,
                    "labels": labels,
                },
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}},
                "status": {
                    "replicas": replicas,
                    "readyReplicas": replicas,
                    "availableReplicas": replicas,
                    "observedGeneration": 1,
                },
            }

    def budgets(self, every: int = 3) -> Iterator[dict[str, Any]]:
        """Yield a PodDisruptionBudget for every so many owners."""
        for owner in range(0, self.size.owners, every):
            app, share = f"app-{owner:05}", max(1, self.size.pods // self.size.owners)
            yield {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "metadata": {
                    "name": app,
                    "namespace": self.namespaces[owner % self.size.namespaces],
                    "uid": _uid(self._random),
                    "resourceVersion": str(5_000 + owner),
                    "generation": 1,
                },
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": app}}},
                "status": {
                    "disruptionsAllowed": 1,
                    "currentHealthy": share,
                    "desiredHealthy": share - 1,
                    "expectedPods": share,
                    "observedGeneration": 1,
                },
            }

    def other_objects(self) -> Iterator[dict[str, Any]]:
        """Yield namespaces and a priority class."""
        for name in self.namespaces:
            yield {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            }
        yield {
            "kind": "PriorityClass",
            "apiVersion": "scheduling.k8s.io/v1",
            "metadata": {"name": "standard"},
            "value": 0,
        }


def as_bytes(value: dict[str, Any]) -> bytes:
    """Return an object's JSON as the API server writes it: without spaces, keys in order of writing."""
    return json.dumps(value, separators=(",", ":")).encode()


def pages(items: Iterator[dict[str, Any]], kind: str, page_size: int = 500) -> Iterator[bytes]:
    """Yield the pages of a list; items of a list carry neither kind nor apiVersion."""
    page: list[bytes] = []
    number = 0
    for item in items:
        page.append(as_bytes({key: value for key, value in item.items() if key not in ("kind", "apiVersion")}))
        if len(page) == page_size:
            number += 1
            yield _page(page, kind, str(number))
            page = []
    yield _page(page, kind, "")


def _page(items: list[bytes], kind: str, token: str) -> bytes:
    head = f'{{"kind":"{kind}List","apiVersion":"v1","metadata":{{"resourceVersion":"2000000","continue":"{token}"}},"items":['
    return head.encode() + b",".join(items) + b"]}"
