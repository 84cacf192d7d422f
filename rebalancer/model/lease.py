"""A Lease, as far as an election needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A coordination.k8s.io/v1 Lease: https://kubernetes.io/docs/concepts/architecture/leases/.

    holder: identity, empty after a release.
    duration_seconds: what its holder promised.
    acquired_at, renewed_at: seconds since the epoch as the API server gave them, for comparing and for writing back.
    transitions: how often the holder changed.
    version: resource version; empty for a Lease that is still to be created.
    annotations: for the operator's pause.
    """

    holder: str
    duration_seconds: float
    acquired_at: float
    renewed_at: float
    transitions: int
    version: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
