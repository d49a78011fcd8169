"""The SDK for programs without a loop: the same calls, which wait.

    with BlockingProducer("127.0.0.1:9876", group="shop") as producer:
        producer.send(Message("orders", b"…"))

    with BlockingConsumer("127.0.0.1:9876", group="billing", topics=["orders"]) as consumer:
        for message in consumer:
            …

They are thin faces over the classes of `rockgate.sdk`, which run on one background loop: one thread
for all of them in the process, there while any is open. Calls may come from any thread.
"""

from rockgate.sdk.blocking.admin import BlockingAdmin
from rockgate.sdk.blocking.consumer import BlockingConsumer
from rockgate.sdk.blocking.producer import BlockingProducer, BlockingTransaction
from rockgate.sdk.blocking.pull import BlockingLitePullConsumer, BlockingPullConsumer

__all__ = [
    "BlockingAdmin",
    "BlockingConsumer",
    "BlockingLitePullConsumer",
    "BlockingProducer",
    "BlockingPullConsumer",
    "BlockingTransaction",
]
