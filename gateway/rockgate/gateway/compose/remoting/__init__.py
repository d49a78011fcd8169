"""How RocketMQ's wire is put together: its table, its services, its access, its listeners."""
