"""Messages on their way to listeners, and what becomes of them."""
