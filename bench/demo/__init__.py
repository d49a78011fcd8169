"""Demonstrations: everything that takes part is started, and Ctrl-C ends all of it."""
