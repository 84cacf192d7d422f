"""Recorded clusters and policies, with what the descheduler 0.36 evicted."""
