"""What the members of a consumer group are to read: their topics, and who gets which partitions."""
