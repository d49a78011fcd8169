"""What both protocols share of topics."""
