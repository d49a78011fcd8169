"""Hand codecs for the four bodies that carry data: Produce and Fetch, request and response."""
