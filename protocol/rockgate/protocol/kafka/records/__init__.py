"""Record batches: the header that is read and stamped, and the records that are rarely opened."""
