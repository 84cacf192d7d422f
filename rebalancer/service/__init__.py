"""The controller as a process: built in ``parts``, run in ``life``; logs, metrics, Events and status listen to it."""
