"""Changes of a data directory that no server has open."""
