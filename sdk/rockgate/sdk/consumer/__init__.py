"""Consuming: which member reads which queue, what is cached of it, and what is finished."""
