"""Hand-written codecs of Produce and Fetch, requests and responses."""
