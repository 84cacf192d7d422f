"""Where kube-scheduler would put a pod: its filters, its scores, and what a run has already decided.

Enters: a snapshot and a scheduler configuration. Leaves: predictions. Whether a predicted move is worth making is decided
elsewhere. Everything here is pure: no I/O, clock or randomness.
"""
