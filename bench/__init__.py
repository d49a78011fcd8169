"""Benchmarks: each answers one question, beside a peer measured in the same run."""
