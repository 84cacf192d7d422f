"""What should move: one file per strategy, each pure, each with its arguments, its triggers and one function that asks.

A view of the cluster enters (``view``); a strategy asks it for pods, each with a reason, and goes on from the verdict. What
may be moved, where it would go and what limits a run is the view's business, not the strategy's.
"""
