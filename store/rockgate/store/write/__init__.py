"""Writing: from drafts to log entries and everything derived from them."""
