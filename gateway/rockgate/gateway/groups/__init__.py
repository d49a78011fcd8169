"""What both wires share of consumer groups: who owns a group, and how far it has come."""
