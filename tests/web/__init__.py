"""Tests of probes, metrics and status."""
