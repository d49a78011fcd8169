"""Half messages: which are undecided, and how the latest ended."""
