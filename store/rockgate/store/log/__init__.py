"""The commit log: segments, flushing, recovery, and page residency."""
