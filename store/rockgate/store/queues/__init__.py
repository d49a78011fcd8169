"""Consume queues: the log position of each offset of each queue."""
