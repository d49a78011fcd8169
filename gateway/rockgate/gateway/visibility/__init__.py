"""What is visible to a reader of a queue: stable offsets, aborted batches, empty offsets."""
