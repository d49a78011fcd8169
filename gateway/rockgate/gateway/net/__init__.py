"""Connections, whatever is spoken on them: addresses, listeners, streams, budgets, limits."""
