"""Offline tools for data directories: inspect, dump, try and repair."""
