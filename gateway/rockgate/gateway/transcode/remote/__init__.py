"""Records as messages of brokers elsewhere, and back: without the store."""
