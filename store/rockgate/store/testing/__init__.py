"""Files in memory that forget what was not synced: for crash tests."""
