"""The HTTP listener: probes and monitoring, nothing else; small enough to need no framework."""
