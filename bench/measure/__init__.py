"""Measurement: timing, processes, memory, results."""
