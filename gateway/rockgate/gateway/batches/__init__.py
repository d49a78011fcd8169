"""Opening record batches: how much they may become, and threads for those that take long."""
