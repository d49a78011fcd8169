"""Administration of brokers over RocketMQ's wire: topics, groups, messages, offsets, typed."""
