"""Records of share groups (KIP-932): acquired for a time, and acknowledged."""
