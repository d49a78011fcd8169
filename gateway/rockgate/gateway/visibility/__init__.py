"""What a reader may see of a queue: stable offsets, aborted batches, empty offsets."""
