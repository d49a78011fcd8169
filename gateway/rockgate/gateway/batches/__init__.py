"""Decoding record batches: limits on their size, and threads for large ones."""
