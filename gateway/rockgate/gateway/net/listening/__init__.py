"""Listeners: their endpoints as settings list them, their sockets, and who holds them."""
