"""Where the numbers on `/metrics` come from: one source for each part of the server."""
