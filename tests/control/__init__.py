"""Tests of when and how fast: everything in virtual time, without sockets."""
