"""Hooks around sends and consumption: what they see, and how they are found and called."""
