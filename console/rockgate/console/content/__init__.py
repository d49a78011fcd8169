"""Contents of messages as text: encodings recognised, fields masked, filters."""
