"""Client quotas: their limits, measuring, and throttling. docs/reference/quotas.md."""
