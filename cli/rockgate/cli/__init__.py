"""The command line, and the small clients that it asks servers with."""
