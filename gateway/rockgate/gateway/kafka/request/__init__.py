"""What every handler of Kafka's wire stands on: rows, peers, errors, names, chunked work."""
