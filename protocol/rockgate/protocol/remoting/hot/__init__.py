"""Hand-written codecs of the headers of sends and pulls."""
