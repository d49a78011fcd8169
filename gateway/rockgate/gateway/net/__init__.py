"""Connections of any protocol: addresses, listeners, streams, budgets, limits."""
