"""The dictionary between the two sides: what one wrote, in the words of the other.

docs/internals/mapping.md specifies it and has the dictionary as a table. Each side reads its own
kind as it lies in the log; only what the other side wrote comes through here, at read time.
"""
