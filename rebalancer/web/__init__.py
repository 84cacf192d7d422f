"""Probes, metrics, status and the manual trigger over HTTP.

Callables and plain values enter (``faces.Faces``), bytes leave. What the answers mean is decided elsewhere.
"""
