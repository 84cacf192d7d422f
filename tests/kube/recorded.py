"""What a real API server (1.36.2) answered, as replies."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rebalancer.kube.reply import Reply

STORIES = Path(__file__).parent.parent / "conformance" / "api"


def steps(story: str) -> list[dict[str, Any]]:
    """The steps of a story."""
    found: list[dict[str, Any]] = json.loads(gzip.decompress((STORIES / f"{story}.json.gz").read_bytes()))["steps"]
    return found


def as_reply(response: dict[str, Any]) -> Reply:
    """A recorded response as a reply."""
    body = response["body"]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Reply(response["status"], {name.lower(): value for name, value in response["headers"].items()}, raw)


def evictions() -> Iterator[tuple[str, str, dict[str, Any], Reply]]:
    """Story, note, request and reply of every recorded eviction."""
    for path in sorted(STORIES.glob("eviction-*.json.gz")):
        story = path.name.removesuffix(".json.gz")
        for step in steps(story):
            if "request" in step and step["request"]["path"].endswith("/eviction"):
                yield story, step["note"], step["request"], as_reply(step["response"])
