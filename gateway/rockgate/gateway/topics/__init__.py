"""What both wires share of topics."""
