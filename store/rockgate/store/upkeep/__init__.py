"""What a store does by itself: checkpoints, retention, moving, the disk's limits."""
