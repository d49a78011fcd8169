"""The handlers of Kafka's APIs, one module each; `compose.kafka.table` lists them."""
