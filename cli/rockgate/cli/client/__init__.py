"""A small Kafka client for the command line: any server, any number of brokers, no threads."""
