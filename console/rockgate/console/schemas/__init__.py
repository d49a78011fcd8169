"""Schemas of a registry, and the values that were written by them: Avro, Protobuf, JSON."""
