"""What compaction drops: the records of both wires, by key."""
