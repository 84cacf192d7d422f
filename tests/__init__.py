"""Tests of rebalancer; they read as its specification."""
