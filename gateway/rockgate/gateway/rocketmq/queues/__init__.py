"""The data path: one writer and one reader for each queue."""
