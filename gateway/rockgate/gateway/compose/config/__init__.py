"""Configuration: every room owns its dataclass of settings; this package only gathers them."""

from rockgate.gateway.compose.config.gather import SETTINGS, Gathered, gather
from rockgate.gateway.compose.config.sections import Config

__all__ = ["SETTINGS", "Config", "Gathered", "gather"]
