"""Record batches: headers, which are read and stamped, and records, which are rarely decoded."""
