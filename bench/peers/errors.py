"""What can go wrong with a peer.

PeerError
├── ToolMissing     Java or Maven is not installed; the message says what to install
├── FetchFailed     Maven could not bring the jars
├── NotReady        it ended, or did not answer in time; the end of its log is in the message
└── NotRunning      nothing of that kind was started in that directory, or it already runs
"""


class PeerError(Exception):
    """A peer cannot be run."""


class ToolMissing(PeerError):
    """A program that we need is not installed."""


class FetchFailed(PeerError):
    """The jars could not be brought."""


class NotReady(PeerError):
    """A peer did not come up."""


class NotRunning(PeerError):
    """A peer is not in the state that a command needs."""
