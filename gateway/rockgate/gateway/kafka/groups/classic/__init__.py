"""The classic group protocol: the machine of one group, its members and its events."""
