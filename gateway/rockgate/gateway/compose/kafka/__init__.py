"""How Kafka's wire is put together: its table, its services, its listeners."""
