"""One module per API, its request and response side by side, named as Kafka names them."""
