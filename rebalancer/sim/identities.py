"""Where uids and the random endings of names come from: one injected source of randomness."""

from __future__ import annotations

import random
import uuid

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Identities:
    """Makes uids and name endings out of a random source, so that a seed repeats them."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def uid(self) -> str:
        """Return a new version 4 UUID."""
        return str(uuid.UUID(int=self._source.getrandbits(128), version=4))

    def ending(self, length: int = 5) -> str:
        """Return letters such as the API server appends to ``generateName``."""
        return "".join(self._source.choice(_LETTERS) for _ in range(length))
