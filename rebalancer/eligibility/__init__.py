"""What may be moved: the rules of the default evictor and of disruption budgets, each a small function with a reason.

A pod or its shape and what is known of the cluster enter; an Objection leaves, or None. Which pods *should* move is up to
``strategies``, where they would go to ``placement``, and the order of all of it to ``decide``.
"""
