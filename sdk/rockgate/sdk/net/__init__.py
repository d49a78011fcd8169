"""Connections to brokers: sockets, requests in flight, and what comes again and again."""
