"""The handlers of Kafka's APIs, one module each; `compose.kafka_table` lists them."""
