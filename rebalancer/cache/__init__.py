"""What the API server has, as the newest values and indexes on them.

Enters: reports of the watches (``rebalancer.model.change``). Leaves: facts (what a change meant) and snapshots (frozen pictures).
Buckets are immutable and replaced on change: a bucket that *is* the one seen before has not changed.
"""
