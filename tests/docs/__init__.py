"""The documentation is true: its links lead somewhere, its commands run, its policies load, its names exist."""
