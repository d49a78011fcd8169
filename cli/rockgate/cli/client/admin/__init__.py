"""Administration over Kafka's wire: topics, configs, groups, offsets, quotas, transactions."""
