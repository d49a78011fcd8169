"""What commands are built on: running one, flags, completion, plugins."""
