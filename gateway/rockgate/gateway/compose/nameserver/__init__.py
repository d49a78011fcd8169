"""Assembles the name server: inside `serve`, or alone in its process."""
