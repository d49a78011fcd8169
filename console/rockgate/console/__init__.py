"""The web console: pages over what the command line knows, in a process of its own."""
