"""How far a group is: in memory, and in a file of a broadcasting group."""
