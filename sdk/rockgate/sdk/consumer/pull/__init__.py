"""Consumers that fetch by themselves: plain pulls, batches by poll, and tasks that come again."""
