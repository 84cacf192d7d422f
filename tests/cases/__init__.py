"""Tests of what should move, what may move, and what is decided."""
