"""What every Kafka handler is built on: rows, peers, errors, names, chunked work."""
