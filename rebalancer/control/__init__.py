"""When to look, and how fast to act: triggers, debounce, windows, runs, evictions, settling, leadership.

Everything that touches the world comes in through a port (``ports.py``); time comes in as a Clock, so that all of it can be
tested in virtual time. What happens is told as values (``happenings.py``) to whoever listens.
"""
