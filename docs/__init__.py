"""The documentation, and what writes the generated parts of it (``docs.generate``)."""
