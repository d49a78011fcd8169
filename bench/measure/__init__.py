"""How things are measured, and what is left of it: timing, processes, memory, results."""
