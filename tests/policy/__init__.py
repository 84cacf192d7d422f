"""Policies: documents of both versions, environment variables, words, commands; strategies are tested elsewhere."""
