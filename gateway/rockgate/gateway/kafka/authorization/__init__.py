"""What a client of Kafka's wire may do: one table of guards, and the questions handlers ask."""
