"""Tests of the whole service: real processes against the embedded cluster."""
