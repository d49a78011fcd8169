"""Groups of the consumer protocol (KIP-848): the server assigns, members follow by heartbeats."""
