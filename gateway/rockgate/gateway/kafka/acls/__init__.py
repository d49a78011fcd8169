"""ACLs as Kafka's requests have them."""
