"""The controller as real processes on an embedded cluster that is a process, too."""
