"""Sending records: partitions, batches, order."""
