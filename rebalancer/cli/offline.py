"""``plan``, ``explain`` and ``place``: decide and show, on a dump or on the live cluster. Nothing is evicted.

On a dump none of them imports the Kubernetes client.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from rebalancer.cli.reading import read_bytes, read_document, read_input, read_objects, read_time
from rebalancer.errors import InputError, Mistake
from rebalancer.parse.spelling import nearest_name

if TYPE_CHECKING:
    from rebalancer.decide.guards import Guards


class Output(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FILE", help="A dump, as `kubectl get nodes,pods,pdb -A -o json` gives it; - is standard input."
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="FILE", help="The policy; without it, REBALANCER_POLICY_FILE or the variables decide."),
]
NowOption = Annotated[str | None, typer.Option("--now", metavar="TIME", help="The moment to decide for; default: the present.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table or json.")]
PlacementOption = Annotated[
    str | None, typer.Option("--placement", help="required, fit or off; default: REBALANCER_PLACEMENT, else required.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="FILE", help="A KubeSchedulerConfiguration; default: kube-scheduler's own defaults."),
]
GuardsOption = Annotated[
    bool, typer.Option("--guards", help="Apply the caps and protected namespaces of the settings too, as the controller does.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("plan", help="Show which pods would be moved and why, and why the others would not.")(plan)
    app.command("explain", help="Show the whole chain for one pod: each strategy, each rule, where it would go.")(explain)
    app.command("place", help="Show where kube-scheduler would put a pod, with scores.")(place)


def plan(
    dump: FromOption = None,
    policy: PolicyOption = None,
    now: NowOption = None,
    output: OutputOption = Output.TABLE,
    placement: PlacementOption = None,
    scheduler: SchedulerOption = None,
    guards: GuardsOption = False,
) -> None:
    """Print the plan for a dump or for the live cluster."""
    from rebalancer.cli.tables import print_plan

    result = decided(dump, policy, now, placement, scheduler, guards)
    if output is Output.JSON:
        write_json(result.to_dict())
    else:
        print_plan(result)


def explain(
    pod: Annotated[str, typer.Argument(metavar="NAMESPACE/POD", help="The pod to explain.")],
    dump: FromOption = None,
    policy: PolicyOption = None,
    now: NowOption = None,
    output: OutputOption = Output.TABLE,
    placement: PlacementOption = None,
    scheduler: SchedulerOption = None,
    guards: GuardsOption = False,
) -> None:
    """Print every strategy's and every rule's view of one pod."""
    from rebalancer.decide.explain import explain as explained

    inputs = Inputs(dump, policy, now, placement, scheduler, guards)
    keys = [each.key for each in inputs.snapshot.all_pods()]
    if pod not in keys:
        raise InputError("arguments", [Mistake("POD", f"{pod} is not in the cluster", nearest_name(pod, keys))])
    result = explained(
        inputs.snapshot, inputs.policy, pod, guards=inputs.guards, placement=inputs.placement, scheduler=inputs.scheduler
    )
    if output is Output.JSON:
        write_json(result.to_dict())
    else:
        for note in inputs.notes:
            sys.stderr.write(f"warning: {note}\n")
        sys.stdout.write("\n".join(result.lines()) + "\n")


def place(
    pod: Annotated[str, typer.Option("--pod", metavar="FILE|NAMESPACE/NAME", help="A pod's manifest, or a pod of the dump.")],
    dump: Annotated[str, typer.Option("--from", metavar="FILE", help="A dump of the cluster; - is standard input.")],
    output: OutputOption = Output.TABLE,
    scheduler: SchedulerOption = None,
) -> None:
    """Print where kube-scheduler would put a pod. A pod of the dump is taken off its node first."""
    from rebalancer.api import place as placed
    from rebalancer.api import typed_scheduler
    from rebalancer.cli.tables import print_placement

    objects = read_objects(dump)
    config = typed_scheduler(read_document(scheduler, "a KubeSchedulerConfiguration") if scheduler else None)
    document, rest = incoming(pod, objects)
    result = placed(rest, document, scheduler=config)
    if output is Output.JSON:
        write_json(result.to_dict())
    else:
        print_placement(result)


def incoming(pod: str, objects: list[Mapping[str, Any]]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the pod to place and the objects without it."""
    known = {}
    for each in objects:
        if each.get("kind") == "Pod":
            metadata = each.get("metadata") or {}
            known[f"{metadata.get('namespace', 'default')}/{metadata.get('name')}"] = each
    if pod in known:
        chosen = known[pod]
        return chosen, [each for each in objects if each is not chosen]
    try:
        data = read_input(pod)
    except InputError as error:
        expected = "must be a file with a pod's manifest, or namespace/name of a pod in the dump"
        raise InputError("arguments", [Mistake("--pod", f"{pod} {expected}", nearest_name(pod, known))]) from error
    from rebalancer.parse.dump import read_dump

    pods = [each for each in read_dump(data, pod) if each.get("kind") == "Pod"]
    if len(pods) != 1:
        raise InputError(pod, [Mistake("$", f"must hold one Pod, not {len(pods)}")])
    return pods[0], objects


class Inputs:
    """What ``plan`` and ``explain`` decide on: snapshot, policy, and what goes with them."""

    def __init__(
        self, dump: str | None, policy: str | None, now: str | None, placement: str | None, scheduler: str | None, guards: bool
    ) -> None:
        import os

        from rebalancer.api import placement_mode, snapshot_of_objects, typed_policy, typed_scheduler
        from rebalancer.settings import load_policy, load_settings

        environment = dict(os.environ)
        if policy is not None:
            environment = without_policy(environment)
            environment["REBALANCER_POLICY_FILE"] = policy
        settings = load_settings(environment)
        moment = read_time(now)
        unread: list[str] = []
        objects: Sequence[Mapping[str, Any]]
        if dump is None:
            from rebalancer.cli.live import live_objects

            objects, unread = live_objects(settings)
        else:
            objects = read_objects(dump)
        self.snapshot, self.notes = snapshot_of_objects(objects, moment, complete=dump is None)
        loaded = load_policy(settings, environment, read=read_bytes)
        self.notes = (*loaded.warnings, *unread, *self.notes)
        self.policy = typed_policy(loaded.policy, self.snapshot, source=policy or settings.policy.policy_file or "environment")
        self.placement = placement_mode(placement or settings.mode.placement)
        path = scheduler or settings.cluster.scheduler_config_file
        self.scheduler = typed_scheduler(read_document(path, "a KubeSchedulerConfiguration") if path else None)
        self.guards: Guards | None = None
        if guards:
            from rebalancer.service.evaluation import guards_of

            self.guards = guards_of(settings)


def without_policy(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would describe a policy: a policy given on the command line wins."""
    from rebalancer.policy import is_policy_variable

    return {name: value for name, value in environment.items() if not is_policy_variable(name)}


def decided(
    dump: str | None, policy: str | None, now: str | None, placement: str | None, scheduler: str | None, guards: bool
) -> Any:
    """Return the plan for the inputs."""
    from dataclasses import replace

    from rebalancer.decide.evaluate import evaluate

    inputs = Inputs(dump, policy, now, placement, scheduler, guards)
    result = evaluate(
        inputs.snapshot, inputs.policy, guards=inputs.guards, placement=inputs.placement, scheduler=inputs.scheduler
    )
    return replace(result, notes=(*inputs.notes, *result.notes))


def write_json(value: Any) -> None:
    """Print a value as JSON that a person can read."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()
