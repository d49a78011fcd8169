"""The way in: from drafts to entries of the log, and to everything derived from them."""
