"""Which Deployment's rollout replaces a single replica, its replacement first, and why none does where none does."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.eligibility.objection import Objection
from rebalancer.eligibility.rollout import rollout_of, share
from tests.builders import Object, a_cluster, a_node, a_pod
from tests.decide.single import a_deployment, a_replica_set

SHARES = st.one_of(st.integers(0, 5), st.integers(0, 300).map(lambda percent: f"{percent}%"))


def verdict(*objects: Object, pod: Object | None = None) -> str:
    """Return the name of the Deployment to roll out, or the code of the objection."""
    snapshot = a_cluster(a_node("n1"), pod or a_pod("p", "n1"), *objects)
    answer = rollout_of(snapshot, snapshot.on("n1")[0].shape)
    return answer.code if isinstance(answer, Objection) else answer.name


def rolling(**limits: Any) -> Object:
    """Return a strategy with these limits."""
    return {"type": "RollingUpdate", "rollingUpdate": limits}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({}, "web", id="nothing said"),
        pytest.param(rolling(maxSurge="25%", maxUnavailable="25%"), "web", id="the defaults"),
        pytest.param(rolling(maxSurge="1%"), "web", id="any percentage is rounded up"),
        pytest.param(rolling(maxSurge=1, maxUnavailable=0), "web", id="one more"),
        pytest.param(rolling(maxSurge=1, maxUnavailable="99%"), "web", id="less than all is rounded down"),
        pytest.param(rolling(maxSurge=0), "surge-none", id="none"),
        pytest.param(rolling(maxSurge="0%"), "surge-none", id="none of a hundred"),
        pytest.param(rolling(maxSurge="half"), "surge-none", id="unreadable"),
        pytest.param(rolling(maxSurge=1, maxUnavailable=1), "surge-unavailable", id="may do without it"),
        pytest.param(rolling(maxSurge=1, maxUnavailable="100%"), "surge-unavailable", id="may do without all"),
        pytest.param({"type": "Recreate"}, "surge-recreate", id="Recreate"),
    ],
)
def test_the_strategy_has_to_start_the_replacement_first(strategy: Object, expected: str) -> None:
    """It may add a pod, and may not do without the one there is until the other is Ready."""
    assert verdict(a_replica_set(), a_deployment(strategy=strategy)) == expected


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([a_deployment()], "surge-owner", id="ReplicaSet unknown"),
        pytest.param([a_replica_set()], "surge-owner", id="Deployment unknown"),
        pytest.param([a_replica_set(owner=None), a_deployment()], "surge-owner", id="ReplicaSet by itself"),
        pytest.param([a_replica_set(owner="Rollout"), a_deployment(kind="StatefulSet")], "surge-owner", id="somebody else's"),
        pytest.param([a_replica_set(), a_deployment(paused=True)], "surge-paused", id="paused"),
        pytest.param([a_replica_set(), a_deployment(status={"observedGeneration": 1})], "workload-in-rollout", id="just changed"),
        pytest.param([a_replica_set(), a_deployment(status={"replicas": 2})], "workload-in-rollout", id="pods of two revisions"),
        pytest.param([a_replica_set(generation=3), a_deployment()], "workload-in-rollout", id="ReplicaSet just scaled"),
    ],
)
def test_only_a_settled_deployment_can_be_rolled_out(objects: list[Object], expected: str) -> None:
    """Neither somebody else's pods, nor a Deployment that is paused or in the middle of a rollout."""
    assert verdict(*objects) == expected


def test_a_stateful_sets_pod_has_no_rollout_that_starts_a_replacement_first() -> None:
    """Nor has a bare pod."""
    assert verdict(pod=a_pod("p", "n1", owner="StatefulSet")) == "surge-owner"
    assert verdict(pod=a_pod("p", "n1", owner=None)) == "surge-owner"


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param({"emptyDir": {}}, "web", id="emptyDir"),
        pytest.param({"persistentVolumeClaim": {"claimName": "shared"}}, "web", id="ReadWriteMany"),
        pytest.param({"persistentVolumeClaim": {"claimName": "own"}}, "surge-volume", id="ReadWriteOnce"),
        pytest.param({"persistentVolumeClaim": {"claimName": "gone"}}, "surge-volume", id="unknown claim"),
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, "surge-volume", id="disk"),
        pytest.param({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, "web", id="disk that is only read"),
    ],
)
def test_a_volume_of_one_node_would_keep_the_replacement_waiting(volume: Object, expected: str) -> None:
    """The replacement would wait for the old pod to let go of it, and the rollout for the replacement."""
    pod = a_pod("p", "n1", spec={"volumes": [{"name": "v", **volume}]})
    claims = [
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "ns1"},
            "spec": {"accessModes": [mode], "volumeName": name},
        }
        for name, mode in (("shared", "ReadWriteMany"), ("own", "ReadWriteOnce"))
    ]
    assert verdict(a_replica_set(), a_deployment(), *claims, pod=pod) == expected


@given(given_share=SHARES, replicas=st.integers(0, 50))
def test_shares_are_rounded_as_the_deployment_controller_does(given_share: int | str, replicas: int) -> None:
    """maxSurge up, maxUnavailable down; a number is a number."""
    up, down = (share(given_share, replicas, up=way) for way in (True, False))
    if isinstance(given_share, int):
        assert up == down == given_share
    else:
        exact = int(given_share.rstrip("%")) * replicas / 100
        assert (up, down) == (math.ceil(exact), math.floor(exact))


@given(surge=SHARES, unavailable=SHARES)
def test_a_rollout_is_begun_only_where_the_arithmetic_leaves_a_ready_pod(surge: int | str, unavailable: int | str) -> None:
    """Of one replica: at least two pods may run, and at least one has to be available, at every step."""
    expected = verdict(a_replica_set(), a_deployment(strategy=rolling(maxSurge=surge, maxUnavailable=unavailable)))
    adds = share(surge, 1, up=True) >= 1
    keeps = share(unavailable, 1, up=False) == 0
    assert (expected == "web") == (adds and keeps)
