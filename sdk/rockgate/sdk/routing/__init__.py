"""Which broker has which queue, and which to avoid for a while."""
