"""Sources of `/metrics`: one for each part of the server."""
