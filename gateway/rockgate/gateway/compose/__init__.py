"""The composition root: the only package that knows every other, and the store's parts by name."""
