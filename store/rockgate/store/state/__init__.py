"""Folds over the log and their snapshots; topics, epochs."""
