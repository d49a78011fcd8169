"""What clients log in with, and what it costs them to fail."""
