"""Frozen values: what the deciding part knows about a cluster.

Nothing here reads JSON (``parse`` does), does I/O or knows a clock. Values never change after they are made, so they may
be shared between snapshots, threads and caches.
"""
