"""What may move: the rules of the default evictor, each a small function with a reason."""
