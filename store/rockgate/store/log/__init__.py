"""The commit log: segments, flushing, recovery, and which of its pages are resident."""
