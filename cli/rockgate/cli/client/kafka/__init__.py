"""A small Kafka client: any number of brokers, no threads."""
