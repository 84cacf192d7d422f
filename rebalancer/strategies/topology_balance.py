"""How many pods should leave each domain: upstream's arithmetic, on sizes alone.

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatingtopologyspreadconstraint
"""

from __future__ import annotations

import math
from collections.abc import Mapping


def surplus(sizes: Mapping[str, int], max_skew: int, fewest_domains: int | None = None) -> dict[str, int]:
    """Return how many pods should leave each domain; domains that keep theirs are absent.

    The smallest domain takes from the largest: half of what is above the allowed skew, but no more than the large one has
    above the average or the small one lacks to it, each rounded up. With fewer domains than fewest_domains (minDomains) the
    scheduler fills none beyond max_skew.
    """
    if not sizes:
        return {}
    average = sum(sizes.values()) / len(sizes)
    names = sorted(sizes, key=lambda name: (sizes[name], name))
    now = dict(sizes)
    capped = fewest_domains is not None and len(sizes) < fewest_domains
    leaving: dict[str, int] = {}
    low, high = 0, len(names) - 1
    while low < high:
        if now[names[high]] <= average:
            high -= 1
        giver, taker = names[high], names[low]
        skew = now[giver] - now[taker]
        move = 0
        if skew > max_skew:
            move = min(
                math.ceil(now[giver] - average),
                math.ceil(average - now[taker]),
                math.ceil((skew - max_skew) / 2),
            )
            if capped:
                move = min(move, max_skew - now[taker])
        if move <= 0:
            low += 1
            continue
        now[giver] -= move
        now[taker] += move
        leaving[giver] = leaving.get(giver, 0) + move
    return leaving
