"""Tests of rebalancer.parse."""
