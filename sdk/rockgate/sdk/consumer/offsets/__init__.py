"""A group's progress: in memory, and in a file of a broadcasting group."""
