"""Which gateways there are, and which of them serves what."""
