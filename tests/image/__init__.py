"""Tests of the image and of what is in it, without an engine to build it."""
