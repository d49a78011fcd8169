"""The replication protocol: frames between a primary and its replicas, sans-IO."""
