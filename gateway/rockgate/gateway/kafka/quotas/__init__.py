"""Client quotas: what is set, the rates that are measured, and who has to wait. docs/quotas.md."""
