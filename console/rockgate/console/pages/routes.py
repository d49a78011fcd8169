"""The table of pages: modules whose import registers them."""

from typing import Final

MODULES: Final = (
    "overview",
    "topics",
    "topic",
    "messages",
    "message",
    "produce",
    "groups",
    "group",
    "delayed",
    "transactions",
    "dead_letters",
    "clients",
    "security",
    "cluster",
    "log",
)
