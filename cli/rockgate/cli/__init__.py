"""The command line, and the small clients that it uses."""
