"""Delayed records inside batches: which they are, and what readers see instead."""
