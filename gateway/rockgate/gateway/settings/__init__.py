"""Settings that change while the server runs, whichever wire changes them."""
