"""Consuming: who reads which queue, what was pulled of it, and how far it is finished."""
