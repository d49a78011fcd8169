"""Kafka's transactions: who is in one, what it wrote, how it ended, and what readers may see."""
