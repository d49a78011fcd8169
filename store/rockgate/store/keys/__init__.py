"""The key index: messages by unique key and by each of their keys."""
