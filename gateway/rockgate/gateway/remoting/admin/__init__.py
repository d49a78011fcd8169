"""What operators ask: what waits, which half messages are undecided, and to end either."""
