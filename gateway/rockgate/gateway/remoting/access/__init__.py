"""Users and their rights over RocketMQ's wire: the codes of 5.x and of 4.9, over one set."""
