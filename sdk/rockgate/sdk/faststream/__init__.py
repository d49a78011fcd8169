"""A FastStream broker over this SDK: `pip install "rockgate[faststream]"`.

    broker = RocketBroker("127.0.0.1:9876", group="shop")

    @broker.subscriber("orders", "new || paid")
    @broker.publisher("invoices")
    async def bill(order: Order) -> Invoice: …

    asyncio.run(FastStream(broker).run())

With `subscriber(…, batch=True)` a handler gets batches; a `RocketRouter` groups handlers.
FastStream decodes and validates bodies, injects dependencies and runs middlewares; which messages
come, and when one that failed comes again, is up to the SDK's consumer. FastStream's base classes
for brokers are private, so one minor version is supported.
"""

try:
    import faststream  # noqa: F401 # whether it is installed, before anything of it is needed
except ImportError:
    raise ImportError(
        'rockgate.sdk.faststream needs FastStream. Install it: pip install "rockgate[faststream]".'
    ) from None

from rockgate.sdk.faststream.broker import RocketBroker
from rockgate.sdk.faststream.endpoints import (
    RocketBatchPublisher,
    RocketPublisher,
    RocketSubscriber,
)
from rockgate.sdk.faststream.messages import RocketBatch, RocketMessage, RocketReply
from rockgate.sdk.faststream.registrator import RocketRouter

__all__ = [
    "RocketBatch",
    "RocketBatchPublisher",
    "RocketBroker",
    "RocketMessage",
    "RocketPublisher",
    "RocketReply",
    "RocketRouter",
    "RocketSubscriber",
]
