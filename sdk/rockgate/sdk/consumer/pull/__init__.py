"""Consumers that pull on demand: plain pulls, batches by poll, and scheduled tasks."""
