"""Progress of consumer groups, which is RocketMQ's, and their members, which are in memory."""
