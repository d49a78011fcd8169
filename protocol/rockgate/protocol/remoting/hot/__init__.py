"""The headers that travel with every message, read and written by hand: send and pull."""
