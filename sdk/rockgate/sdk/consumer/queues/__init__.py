"""The queues that a member holds: their assignment, caches and pulling."""
