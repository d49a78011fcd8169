"""The classic group protocol: the state machine of one group, its members and its events."""
