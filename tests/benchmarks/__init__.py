"""The benchmarks still measure what they say: counts at a small size, never times."""
