"""The queues that a member holds: which, what is cached of them, and how they are pulled."""
