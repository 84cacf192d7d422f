"""What to do about each refusal, remark and alert: the hand-written half of the runbook.

The other half, the codes and their sentences, comes from the program. ``docs/generate.py`` puts the two together and stops
where one of them lacks the other.
"""

from __future__ import annotations

from collections.abc import Mapping

REFUSALS: Mapping[str, Mapping[str, str]] = {
    "Rules of the evictor": {
        "terminating": "Nothing. The pod is going already.",
        "static": "Nothing. No annotation and no setting changes this.",
        "evict-false": "Remove the annotation from the pod's template.",
        "prefer-no-eviction": "Remove the annotation from the pod's template, or set `noEvictionPolicy: Preferred`.",
        "local-storage": "Add `PodsWithLocalStorage` to `podProtections.defaultDisabled` if the data may be lost.",
        "daemon-set": (
            "Usually nothing: a DaemonSet's pod comes back to its node. To allow it, add `DaemonSetPods` to "
            "`podProtections.defaultDisabled`."
        ),
        "system-critical": "Leave it. To allow it, add `SystemCriticalPods` to `podProtections.defaultDisabled`.",
        "no-owner": (
            "Give the pod an owner (a Deployment, say). With `FailedBarePods` in `podProtections.defaultDisabled` failed ones go."
        ),
        "bare-not-failed": "Nothing. A running pod without an owner would be lost.",
        "pvc": (
            "Take `PodsWithPVC` out of `podProtections.extraEnabled`, or protect only some storage classes "
            "(`podProtections.config.PodsWithPVC.protectedStorageClasses`)."
        ),
        "pvc-storage-class": "Take the class out of `protectedStorageClasses` if such pods may move.",
        "pvc-unknown-class": "Look at the claim: it does not exist, or names no class. It is protected as long as that is so.",
        "no-budget": (
            "Write a PodDisruptionBudget for the workload, or take `PodsWithoutPDB` out of `podProtections.extraEnabled`."
        ),
        "resource-claims": "Take `PodsWithResourceClaims` out of `podProtections.extraEnabled` if such pods may move.",
        "safe-to-evict-false": "Remove the annotation, or add `PodsWithSafeToEvictFalse` to `podProtections.defaultDisabled`.",
        "do-not-disrupt": "Remove the annotation, or add `PodsWithDoNotDisrupt` to `podProtections.defaultDisabled`.",
        "priority": "Raise `priorityThreshold` above the pod's priority if it may move.",
        "label-selector": "Nothing, if that is what `labelSelector` is for. Else widen it.",
        "min-replicas": "Add replicas, wait until they are Ready, or lower `minReplicas`.",
        "min-pod-age": "Wait, or lower `minPodAge`.",
        "not-started": "Look at the pod: it has no start time. It goes once it has started and is old enough.",
        "namespace-selector": "Label the namespace, or widen `namespaceLabelSelector`.",
    },
    "Limits and caps": {
        "limit-total": "The rest comes with the next run. Raise `maxNoOfPodsToEvictTotal` to move more in one.",
        "limit-node": "The rest comes with the next run. Raise `maxNoOfPodsToEvictPerNode` to move more in one.",
        "limit-namespace": "The rest comes with the next run. Raise `maxNoOfPodsToEvictPerNamespace` to move more in one.",
        "limit-strategy-node": "The rest comes with the next run. Raise the strategy's `evictionLimits.node`.",
        "cap-total": "The rest comes with the next run. Raise `REBALANCER_CAP_TOTAL`, or set it to `none`.",
        "cap-node": "The rest comes with the next run. Raise `REBALANCER_CAP_NODE`, or set it to `none`.",
        "cap-namespace": "The rest comes with the next run. Raise `REBALANCER_CAP_NAMESPACE`, or set it to `none`.",
        "cap-workload": "The rest comes with the next run. Raise `REBALANCER_CAP_WORKLOAD`, or set it to `none`.",
    },
    "Guards of the controller": {
        "protected-namespace": "Take the namespace out of `REBALANCER_PROTECTED_NAMESPACES` if its pods may move.",
        "cooldown": (
            "Wait, or find out why the last move did not help: see [move-did-not-help](#move-did-not-help). The rest "
            "ends early when the set of nodes changes."
        ),
        "single-replica": "Add a replica, or set `REBALANCER_SINGLE_REPLICA` to another value than `skip`.",
        "surge-owner": (
            "A StatefulSet, a Job or a controller of somebody's own cannot start the replacement first. Add a replica, or set "
            "`REBALANCER_SINGLE_REPLICA` to `auto` if an outage is bearable."
        ),
        "surge-paused": "`kubectl rollout resume` the Deployment if its pods may move.",
        "surge-recreate": "Set the strategy to `RollingUpdate` if two pods may run at once; else the pod stays where it is.",
        "surge-none": "Set `maxSurge` to 1 or more (a percentage is rounded up) if two pods may run at once.",
        "surge-unavailable": "Set `maxUnavailable` to 0 (a percentage below 100 is rounded down to it).",
        "surge-volume": (
            "Nothing: with a volume that one node can use at a time, the replacement would wait for the old pod, and the old pod "
            "for it. A claim with the access mode `ReadWriteMany` or `ReadOnlyMany` may be moved."
        ),
        "workload-gone": "Look for orphans: the pod's owner was deleted without it.",
        "workload-scaled-to-zero": "Nothing. The pod is about to go.",
        "workload-in-rollout": "Wait for the rollout. If it is stuck, mend it: `kubectl rollout status`.",
        "workload-unready": "Find out why replicas are not Ready. Until they are, no healthy one of them is moved.",
        "owner-stopped": (
            "Two strategies moved pods of this workload to and fro. Change one of them: see "
            "[strategies-at-odds](#strategies-at-odds)."
        ),
    },
    "Disruption budgets": {
        "budget": (
            "Wait until more pods are Ready, or loosen the budget. `minAvailable` equal to the number of replicas "
            "never allows an eviction."
        ),
        "budget-stale": "Usually nothing: it passes within seconds. If it stays, look at kube-controller-manager.",
        "budgets-several": "Change the selectors so that one budget selects each pod: the API server refuses such evictions.",
    },
    "Places to go": {
        "no-fit": (
            "Read the rest of the sentence: it is kube-scheduler's, counted over all nodes. Add room, or change what "
            "the pod asks for."
        ),
        "no-landing": "The same as for `no-fit`: not even the pod's own node would take it again.",
        "no-gain": (
            "Usually nothing: the move would not help. In a large cluster read [Large "
            "clusters](placement.md#large-clusters-the-scheduler-looks-at-a-sample). `REBALANCER_PLACEMENT=fit` asks "
            "for less."
        ),
        "no-acceptable-landing": "The same as for `no-gain`, in the mode `fit`: no node that fits is an improvement.",
        "scheduler-spreads": (
            "Give kube-scheduler a profile with `MostAllocated` and tell rebalancer "
            "(`REBALANCER_SCHEDULER_CONFIG_FILE`): see [HighNodeUtilization](strategies/high-node-utilization.md)."
        ),
    },
    "Answers of the strategies": {
        "excluded-namespace": "Nothing, if that is what `evictableNamespaces` or `namespaces` is for.",
        "untolerated-destinations": "Nothing. Every node with room carries a taint that the pod does not tolerate.",
        "relieves-nothing": "Nothing. Moving the pod would not lower what the node has too much of.",
        "not-thresholding": "Nothing, if `evictionModes: [OnlyThresholdingResources]` is meant.",
        "topology-node-fit": "Add room in the domains below average, or set `topologyBalanceNodeFit: false`.",
        "no-spread-gain": "Look at the pod's constraints together: mending one would break another.",
        "no-better-node": "Nothing. The nodes that it would rather have cannot take it.",
        "same-owner-there": "Nothing. The other node has as many replicas as its own.",
        "hotter-there": "Nothing. The move would only change which node is hot.",
        "over-target-there": "Add room, or raise `targetThresholds`.",
        "not-a-destination": (
            "Nothing. The replacement may land on a node that is none of the under-used (or, when packing, the fuller) ones."
        ),
        "emptier-there": "Nothing. Packing means moving to fuller nodes.",
        "prefer-taint-there": "Nothing. The other node has a taint of the kind that the pod is to leave.",
        "weight-there": "Nothing. The other node suits the pod no better.",
        "spread-there": "Nothing. The spread would be no better afterwards.",
        "undone-taint": "Nothing. RemovePodsViolatingNodeTaints has [precedence](strategies/index.md#precedence).",
        "undone-affinity": "Nothing. RemovePodsViolatingNodeAffinity has [precedence](strategies/index.md#precedence).",
        "undone-spread": (
            "Nothing. RemovePodsViolatingTopologySpreadConstraint has [precedence](strategies/index.md#precedence)."
        ),
        "undone-levelling": "Nothing. LowNodeUtilization has [precedence](strategies/index.md#precedence).",
        "undone-duplicates": "Nothing. RemoveDuplicates has [precedence](strategies/index.md#precedence).",
        "back-again": "Nothing. The scheduler would choose the same node again.",
    },
}
"""Group, code, what to do. Codes are the keys of ``SENTENCES``."""

PASSED: Mapping[str, tuple[str, str]] = {
    "gone": (
        "The pod was gone before its turn came.",
        "Nothing.",
    ),
    "terminating": (
        "Somebody else was faster: it is terminating.",
        "Nothing.",
    ),
    "asked-before": (
        "Its eviction was accepted already, by this process or the leader before it.",
        "Nothing.",
    ),
    "window": (
        "The window of its profile closed before its turn came.",
        "Nothing. It comes with the next window.",
    ),
    "budgets-several": (
        "Two budgets select it.",
        "See [budgets-several](#budgets-several).",
    ),
    "pod-changed": (
        "The pod was changed since it was decided.",
        "Nothing. The run looks again.",
    ),
    "source-changed": (
        "Its node was changed by somebody else.",
        "Nothing. The run looks again.",
    ),
    "workload-changed": (
        "Its workload was scaled or changed.",
        "Nothing. The run looks again.",
    ),
    "room-given-back": (
        "An earlier pod of its workload is gone, and the plan still took its room as held.",
        "Nothing. It is left to the run's next look, so that its move is foreseen from what is there.",
    ),
    "landings-changed": (
        "The nodes it may land on are not as they were.",
        "Nothing. The run looks again.",
    ),
}
"""Why an approved pod was not asked for after all: code, meaning, what to do."""

NOTICES: Mapping[str, tuple[str, str]] = {
    "listening": (
        "Probes, metrics and status are served.",
        "Nothing.",
    ),
    "synced": (
        "Everything has been listed once.",
        "Nothing.",
    ),
    "move-did-not-help": (
        "A replacement came back to the node it left, landed elsewhere than expected, or was not Ready in time. Its "
        "workload rests on that node, 10 minutes at first, doubling each time.",
        "Once: nothing. Often: the scheduler decides otherwise than predicted. Compare `rebalancer place` with what "
        "happened, and give rebalancer the scheduler's configuration.",
    ),
    "landings-distrusted": (
        "Fewer than 80 % of the last replacements landed where they were expected. `required` falls back to `fit` "
        "until the policy changes or the process restarts.",
        "Find the difference: another scheduler profile, an extender, a webhook that changes pods. Set "
        "`REBALANCER_SCHEDULER_CONFIG_FILE`.",
    ),
    "strategies-at-odds": (
        "One strategy moved a workload's pod to a node, another moved it back. The workload is left alone for 6 hours.",
        "Change thresholds, or disable one of the two. `rebalancer policy check` names pairs that are known to fight.",
    ),
    "forbidden": (
        "The API server does not permit evictions, or rollouts, in a namespace: RBAC or an admission policy. No more of the kind "
        "are sent there in this run.",
        "Read the message: it is the server's. Grant `create` on `pods/eviction` (with `REBALANCER_SINGLE_REPLICA=surge` also "
        "`patch` on `deployments`), or protect the namespace.",
    ),
    "cannot-evaluate": (
        "The policy cannot be used on this cluster: it names a priority class that is not there, say. Nothing is evicted.",
        "Mend what the line names. The next run tries again.",
    ),
    "cannot-be-read": (
        "A kind cannot be listed or watched. Without nodes, pods, budgets, namespaces or priority classes nothing is "
        "evicted; of other kinds it is assumed that there are none.",
        "Grant `list` and `watch` on it: the line names the kind and the reason. See [Security](security.md#what-it-may-do).",
    ),
    "malformed": (
        "An object could not be read and was left out.",
        "Mend the object that the line names, or report it.",
    ),
    "disconnected": (
        "A watch ended and is opened anew.",
        "Nothing, unless it goes on: see [waiting](#waiting).",
    ),
    "policy-changed": (
        "A new version of the policy is in force. The line says what is different.",
        "Nothing.",
    ),
    "policy-rejected": (
        "The new version of the policy is wrong; the last good one stays in force.",
        "Mend it: the line has every mistake. `rebalancer policy check FILE` says the same.",
    ),
    "policy-warning": (
        "Something in the policy is allowed and odd.",
        "Read the line.",
    ),
    "policy-unreadable": (
        "The policy file is not there or cannot be read; the last good one stays in force.",
        "Look at the mount.",
    ),
    "state-unreadable": (
        "What was remembered cannot be read, so nothing is evicted.",
        "Look at access to the ConfigMap and at the API server.",
    ),
    "state-damaged": (
        "The ConfigMap holds something that is none of ours. It is started afresh.",
        "Find out who writes to it.",
    ),
    "state-unwritten": (
        "The account could not be written, so the eviction was not sent.",
        "Look at access to the ConfigMap and at the API server.",
    ),
    "lease-unusable": (
        "The lease cannot be read or written. Without it nothing is evicted.",
        "Grant `create`, `get` and `update` on the Lease: the line has the reason.",
    ),
    "lease-not-released": (
        "The lease could not be given back at the end; it expires by itself.",
        "Nothing.",
    ),
    "lease-kept": (
        "A request had no reply yet at the end, so the lease is left to expire.",
        "Nothing.",
    ),
    "events-refused": (
        "The API server does not take the Events. Evictions go on without.",
        "Grant `create` and `patch` on `events` of `events.k8s.io`, or set `REBALANCER_EVENTS=false`.",
    ),
    "events-lost": (
        "Some Events could not be written before the end.",
        "Nothing. The log has all evictions.",
    ),
    "review-failed": (
        "A bearer token could not be reviewed, so it was refused.",
        "Set `rbac.tokenReviews: true` in the chart.",
    ),
}
"""Log lines that are named by a code: code, meaning, what to do."""

ANSWERS: Mapping[str, tuple[str, str]] = {
    "Accepted": (
        "The pod goes.",
        "Nothing.",
    ),
    "InBackground": (
        "Another controller carries the eviction out. It counts against the limits until it has ended.",
        "Nothing.",
    ),
    "Surged": (
        "The pod is replaced by a rollout of its Deployment (`REBALANCER_SINGLE_REPLICA=surge`).",
        "Nothing.",
    ),
    "Reported": (
        "A dry run: the pod would have gone.",
        "Nothing.",
    ),
    "Gone": (
        "There is no such pod any more.",
        "Nothing.",
    ),
    "Replaced": (
        "Another pod has that name now. Nothing went.",
        "Nothing.",
    ),
    "HeldByBudget": (
        "A PodDisruptionBudget does not allow it now. It is tried again after a pause, until the run's deadline.",
        "See [budget](#budget) if it goes on.",
    ),
    "BudgetForbidden": (
        "A budget is in a state in which the server does not spend it. Tried again later.",
        "Look at the budget's status: `kubectl describe pdb`.",
    ),
    "Throttled": (
        "The server wants fewer requests, or was not reached. Everything slows down.",
        "Look at the API server if it goes on.",
    ),
    "Forbidden": (
        "RBAC or an admission policy refuses it.",
        "See [forbidden](#forbidden).",
    ),
    "Invalid": (
        "The server does not accept the request itself, or a webhook refuses it.",
        "Read the message in the line.",
    ),
    "Unsupported": (
        "Two budgets select the pod, or the server knows no evictions.",
        "See [budgets-several](#budgets-several).",
    ),
    "Unknown": (
        "Sent, and no clear reply came. It counts as accepted until the watch shows that the pod stayed.",
        "Look at the network to the API server if it goes on.",
    ),
}
"""What the API server said to one eviction: answer, meaning, what to do."""

ENDINGS: Mapping[str, tuple[str, str]] = {
    "done": (
        "Nothing is left to gain, or a limit was reached. The reason says which.",
        "Nothing.",
    ),
    "closed": (
        "Evictions may not go out any more: see [waiting](#waiting). The triggers are kept for the next run.",
        "As there.",
    ),
    "deadline": (
        "The run's time was over with moves left.",
        "Raise `REBALANCER_RUN_DEADLINE_SECONDS`, or the caps in flight and per minute.",
    ),
    "failed": (
        "There was nothing to decide on. The reason says why.",
        "See [cannot-evaluate](#cannot-evaluate).",
    ),
    "superseded": (
        "Only waiting was left, and new triggers were due.",
        "Nothing. The next run goes on.",
    ),
    "fenced": (
        "Another process has written the account since: it leads now.",
        "Nothing, if it is rare. Else look for a second installation.",
    ),
}
"""How a run ends: ending, meaning, what to do."""

ALERTS: Mapping[str, tuple[str, str]] = {
    "RebalancerAbsent": (
        "Prometheus has seen no rebalancer for 10 minutes.",
        "Look at the Deployment: `kubectl --namespace kube-system describe deployment rebalancer`, and the log of its"
        " last container. Exit code 2 means that settings or policy are wrong; the log has every mistake. If the pod "
        "runs, look at the scrape: ServiceMonitor, NetworkPolicy, token.",
    ),
    "RebalancerNoLeader": (
        "No replica has held the lease for 5 minutes, so nothing is moved.",
        "See who holds it: `kubectl --namespace kube-system get lease descheduler`. A descheduler or a second release"
        " holds it: stop one of the two. Nobody: look for [lease-unusable](#lease-unusable) in the log.",
    ),
    "RebalancerSeveralLeaders": (
        "More than one replica believes that it holds the lease.",
        "Scale to one replica. Then find out what sets them apart: different `REBALANCER_LEASE_NAME` or "
        "`REBALANCER_LEASE_NAMESPACE`, or leader election switched off.",
    ),
    "RebalancerStale": (
        "A replica has not known for 10 minutes what the cluster looks like, so it moves nothing.",
        "Ask it: `/readyz` names the kinds and the reasons. See [waiting](#waiting).",
    ),
    "RebalancerCannotRead": (
        "A kind of object cannot be read.",
        "See [cannot-be-read](#cannot-be-read): the log names the kind and the reason, most often a missing permission.",
    ),
    "RebalancerLoop": (
        "Moves do not help, or strategies undo each other, more than three times in an hour. The workloads rest, so "
        "the loop is bounded.",
        "Read the lines [move-did-not-help](#move-did-not-help) and [strategies-at-odds](#strategies-at-odds). Change"
        " the policy, or tell rebalancer how the scheduler is configured.",
    ),
    "RebalancerPredictionsWrong": (
        "Replacements land elsewhere than predicted, and placement was lowered to `fit`.",
        "See [landings-distrusted](#landings-distrusted).",
    ),
    "RebalancerEvictionsFail": (
        "More than five evictions in 15 minutes were answered with a failure. Budgets that hold and throttling do not count.",
        "The label `answer` says which: see [Answers of the API server](#answers-of-the-api-server).",
    ),
    "RebalancerReplacementsFail": (
        "More than five replacements in an hour did not become Ready.",
        "Look at the workloads named in the lines `settled`. Pause it if they fail on every node.",
    ),
    "RebalancerStateUnwritten": (
        "What must outlive the process cannot be written or read, so nothing is moved.",
        "See [state-unwritten](#state-unwritten): look at access to the ConfigMap and at the API server.",
    ),
}
"""Alerts of the chart: name, meaning, what to do."""
