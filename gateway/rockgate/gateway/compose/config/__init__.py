"""Configuration: every part owns its dataclass of settings; this package merges the sources."""

from rockgate.gateway.compose.config.gather import SETTINGS, Gathered, gather
from rockgate.gateway.compose.config.sections import Config

__all__ = ["SETTINGS", "Config", "Gathered", "gather"]
