"""Reading: messages by offset, position or key, never beyond what is visible."""
