"""Fetching: sessions, what one request collects, and how one partition is read."""
