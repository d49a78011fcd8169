"""Members of share groups (KIP-932): who reads which partitions side by side."""
