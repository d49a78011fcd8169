"""Producing: validation, order, idempotent producers, and records that are delayed."""
