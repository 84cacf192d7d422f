"""Tests of rebalancer.model."""
