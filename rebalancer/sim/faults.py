"""Faults on demand: what a real API server, network or proxy does on a bad day.

A fault says which requests it meets and how often; the server asks for each request and for each watch line.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

from rebalancer.sim.problems import ApiProblem, expired, unauthorized
from rebalancer.sim.requests import Answer, Request, problem_answer

_BAD_GATEWAY = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)


class Trouble(StrEnum):
    """What goes wrong.

    The first group answers instead of the server; the second spoils a connection.
    """

    GONE = "410"
    THROTTLED = "429"
    INTERNAL = "500"
    BAD_GATEWAY = "502"
    UNAVAILABLE = "503"
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    CUT_LINE = "cut"
    SILENT = "silent"
    SLOW = "slow"
    GONE_IN_STREAM = "410-in-stream"
    RESET = "reset"


@dataclass(slots=True)
class Fault:
    """One trouble.

    path: what the request's path must contain; empty for any. method: empty for any. watches: True for watches only,
    False for other requests only, None for both. times: requests that it meets before it is over, None for no end.
    retry_after_seconds: the header of a 429 or 503. delay_seconds: of SLOW. after_lines: whole watch lines that still pass.
    """

    trouble: Trouble
    path: str = ""
    method: str = ""
    watches: bool | None = None
    times: int | None = 1
    retry_after_seconds: int | None = None
    delay_seconds: float = 1.0
    after_lines: int = 0
    met: int = field(default=0, init=False)

    def meets(self, request: Request, watching: bool) -> bool:
        """Say whether the fault meets a request, and count it."""
        if self.times is not None and self.met >= self.times:
            return False
        if self.path not in request.path or self.method not in {"", request.method}:
            return False
        if self.watches is not None and self.watches is not watching:
            return False
        self.met += 1
        return True


class Faults:
    """The faults in force, and whether the cluster is cut off altogether."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._connected = asyncio.Event()
        self._connected.set()

    @property
    def partitioned(self) -> bool:
        """Whether connections are accepted and then hear nothing; False lets waiting requests through."""
        return not self._connected.is_set()

    @partitioned.setter
    def partitioned(self, cut: bool) -> None:
        """Cut the cluster off, or heal it."""
        if cut:
            self._connected.clear()
        else:
            self._connected.set()

    async def connected(self) -> None:
        """Return once requests get through."""
        await self._connected.wait()

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force and return it, so that its count can be read."""
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Take a fault out of force."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Take every fault out of force and heal the partition."""
        self._faults.clear()
        self.partitioned = False

    def met_by(self, request: Request, watching: bool) -> Fault | None:
        """Return the first fault that meets a request, or None."""
        return next((fault for fault in self._faults if fault.meets(request, watching)), None)


def answer_of(fault: Fault) -> Answer | None:
    """Return the answer that a fault gives instead of the server, or None where it spoils the connection."""
    seconds = fault.retry_after_seconds
    headers = {"Retry-After": str(seconds)} if seconds is not None else {}
    match fault.trouble:
        case Trouble.GONE:
            return problem_answer(expired("too old resource version: 1 (2)"))
        case Trouble.UNAUTHORIZED:
            return problem_answer(unauthorized())
        case Trouble.FORBIDDEN:
            return problem_answer(ApiProblem(403, "forbidden by a fault", "Forbidden", {}))
        case Trouble.THROTTLED:
            body = b"Too many requests, please try again later.\n"
            return Answer(429, body, "text/plain; charset=utf-8", headers)
        case Trouble.INTERNAL:
            return problem_answer(ApiProblem(500, "Internal error occurred: etcdserver: request timed out", "InternalError"))
        case Trouble.UNAVAILABLE:
            return Answer(503, b"apiserver not ready\n", "text/plain; charset=utf-8", headers)
        case Trouble.BAD_GATEWAY:
            return Answer(502, _BAD_GATEWAY, "text/html")
        case _:
            return None
