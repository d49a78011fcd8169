"""A deployment for Kafka's handlers, on the store in this process."""
