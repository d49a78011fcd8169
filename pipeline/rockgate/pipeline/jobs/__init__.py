"""The jobs: each takes a session, its options and a teller, and runs to its end."""
