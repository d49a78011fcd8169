"""Client quotas: what is set, what is measured, who has to wait. docs/reference/quotas.md."""
