"""Errors of peers.

PeerError
├── ToolMissing     Java or Maven is not installed; the message says what to install
├── FetchFailed     Maven could not download the jars
├── NotReady        it ended, or did not respond in time; the message has the end of its log
└── NotRunning      it was not started in that directory, or is already running
"""


class PeerError(Exception):
    """A peer cannot be run."""


class ToolMissing(PeerError):
    """A required program is not installed."""


class FetchFailed(PeerError):
    """The jars could not be downloaded."""


class NotReady(PeerError):
    """A peer did not become ready."""


class NotRunning(PeerError):
    """A peer is not in the state that a command requires."""
