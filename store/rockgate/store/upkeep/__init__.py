"""Background maintenance: checkpoints, retention, relocation, disk limits."""
