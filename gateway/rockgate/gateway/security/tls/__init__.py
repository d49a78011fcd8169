"""TLS of every listener: certificates, their renewal, handshakes, and principals of clients."""
