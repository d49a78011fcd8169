"""SASL mechanisms, sans-IO: what a server says in each step, and whom it believes."""
