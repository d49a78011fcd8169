"""What both protocols share of consumer groups: ownership and committed offsets."""
