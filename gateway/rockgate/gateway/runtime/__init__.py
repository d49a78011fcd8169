"""The process: its logs, identity, data directory, tuning, and why it refuses to start."""
