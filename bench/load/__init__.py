"""What makes load: clients by the thousand, frames of our own, librdkafka, Java, the SDK."""
