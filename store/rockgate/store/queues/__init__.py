"""Consume queues: which offset of which queue lies where in the log."""
