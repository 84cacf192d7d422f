"""Random histories of the whole service in virtual time: what was promised about evictions holds in every one."""
