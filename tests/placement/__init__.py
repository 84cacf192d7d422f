"""Placement: filters, scores, landings, and what a run has decided."""
