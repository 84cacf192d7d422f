"""The decision itself: a snapshot and a policy in, a plan out. Pure: no I/O, clock, randomness or logging.

``evaluate`` runs every strategy of every profile on one picture that follows each approval; ``view`` answers a strategy's
questions with the evictor's rules, the guards, the limits, the budgets and the landing; ``explain`` shows it all for one pod.
"""
