"""Configs of topics, brokers, groups and loggers: what there is, and changing it."""
