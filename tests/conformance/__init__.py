"""Agreement with what real programs were recorded to do."""
