"""Topics as Kafka's clients see them."""
