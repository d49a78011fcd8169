"""Files in memory that lose what was not synced: for crash tests."""
