"""What Kafka's handlers ask of a deployment, answered by the store in this process."""
