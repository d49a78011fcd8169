"""Half messages: which are undecided, and how recent ones ended."""
