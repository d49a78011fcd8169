"""Spark jobs that move data over Kafka's wire, as any user's job would."""
