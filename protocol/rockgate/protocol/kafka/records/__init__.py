"""Record batches: headers are read and updated in place; records are rarely decoded."""
