"""Consumer groups on RocketMQ's wire: clients, locks, settings, resets and notifications."""
