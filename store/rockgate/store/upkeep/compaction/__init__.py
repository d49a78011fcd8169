"""Compaction: rewrites the entries of a queue without the records that later ones supersede."""
