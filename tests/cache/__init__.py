"""The cache: that it always equals what was reported, and what it says a change meant."""
