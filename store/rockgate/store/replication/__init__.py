"""A replica's side of the log: following a primary, cutting where they parted, copying from it."""
