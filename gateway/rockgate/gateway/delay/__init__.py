"""Records that wait for their time inside batches: which they are, and what readers see instead."""
