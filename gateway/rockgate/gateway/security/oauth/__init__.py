"""Bearer tokens of an OAuth 2.0 server: the keys that sign them, and what they say."""
