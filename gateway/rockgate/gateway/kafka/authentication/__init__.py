"""Authentication on Kafka's wire: the states of a connection, and the mechanisms of SASL."""
