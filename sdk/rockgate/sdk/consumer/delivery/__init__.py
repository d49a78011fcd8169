"""Delivers messages to listeners, and settles them."""
