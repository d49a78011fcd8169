"""What people read and write: tables, records, times, streams."""
