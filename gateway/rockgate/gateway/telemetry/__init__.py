"""Metrics: counted as requests run, collected when `/metrics` is scraped."""
