"""Measurements: speed and memory at the sizes that Kubernetes supports. Numbers come from here, never from a timed test."""
