"""The name by which the consumer's modules know a message: it is `rockgate.sdk.received`."""

from rockgate.sdk.received import Received, Settlement, split

__all__ = ["Received", "Settlement", "split"]
