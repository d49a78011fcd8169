"""Spark: sessions, the connector, topics as data frames."""
