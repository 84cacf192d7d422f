"""What the containers of a pod are waiting for or ended with."""

from __future__ import annotations

from rebalancer.model.pod import ContainerStates, Pod


def _groups(pod: Pod, init: bool, ephemeral: bool) -> tuple[ContainerStates, ...]:
    return (pod.main, *((pod.init,) if init else ()), *((pod.ephemeral,) if ephemeral else ()))


def current_reasons(pod: Pod, *, init: bool, ephemeral: bool = False) -> tuple[str, ...]:
    """Return the reasons of containers that wait or have ended, in order; empty ones left out."""
    found: list[str] = []
    for group in _groups(pod, init, ephemeral):
        found.extend(group.waiting)
        found.extend(end.reason for end in group.terminated)
    return tuple(reason for reason in found if reason)


def exit_codes(pod: Pod, *, init: bool, ephemeral: bool = False) -> tuple[int, ...]:
    """Return the exit codes of containers that have ended, in order."""
    return tuple(end.exit_code for group in _groups(pod, init, ephemeral) for end in group.terminated)
