"""The broker's statistics: counters, and their history over a minute, an hour and a day."""
