"""The jobs: each takes a session, its options and a reporter, and runs to its end."""
