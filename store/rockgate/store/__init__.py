"""The log store: one commit log for all topics, and every index derived from it."""
