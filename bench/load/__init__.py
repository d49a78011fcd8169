"""Load generators: members by the thousand, prebuilt frames, librdkafka, Java, the SDK."""
