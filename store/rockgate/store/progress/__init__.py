"""How far each group has come in each queue."""
