"""Authorization of Kafka's wire beside Apache Kafka: the same requests, grants and error codes."""
