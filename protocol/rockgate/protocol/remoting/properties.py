"""Names of the properties that RocketMQ itself uses, and their separators.

A message's properties are `name 0x01 value 0x02` one after another; `protocol.entry` packs and
parses them, because the log has the same format.
"""

from typing import Final

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
WAIT_STORE_OK: Final = "WAIT"
UNIQUE_KEY: Final = "UNIQ_KEY"
DELAY_LEVEL: Final = "DELAY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG: Final = "TRANSFER_FLAG"
CORRECTION_FLAG: Final = "CORRECTION_FLAG"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
MSG_REGION: Final = "MSG_REGION"
TRACE_SWITCH: Final = "TRACE_ON"
CLUSTER: Final = "CLUSTER"
TRANSACTION_ID: Final = "__transactionId__"
CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
CHECK_IMMUNITY_S: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
INSTANCE_ID: Final = "INSTANCE_ID"
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
ARRIVE_TIME: Final = "ARRIVE_TIME"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
MESSAGE_TYPE: Final = "MSG_TYPE"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELAY_S: Final = "TIMER_DELAY_SEC"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
START_DELIVER_TIME: Final = "__STARTDELIVERTIME"
SHARDING_KEY: Final = "__SHARDINGKEY"
POP_CHECKPOINT: Final = "POP_CK"
FIRST_POP_TIME: Final = "1ST_POP_TIME"

KEY_SEPARATOR: Final = " "

DELAYING: Final = frozenset(
    (DELAY_LEVEL, TIMER_DELAY_MS, TIMER_DELAY_S, TIMER_DELIVER_MS, START_DELIVER_TIME)
)
"""A message with any of these is delayed."""
DELAYING_PART: Final = "DEL"
"""A substring of all of these and of few other properties: most messages need no second check."""

# Properties that rockgate adds to messages sent back; docs/internals/retry.md has the table.
RETRY_QUEUE: Final = "__RETRY_QUEUE"
RETRY_OFFSET: Final = "__RETRY_OFFSET"
RETRY_SINCE: Final = "__RETRY_SINCE"
DLQ_SINCE: Final = "__DLQ_SINCE"
DLQ_REASON: Final = "__DLQ_REASON"
WAITED_AT: Final = "__ORIGIN"

RETRY_MARKS: Final = frozenset(
    (
        RETRY_TOPIC,
        ORIGIN_MESSAGE_ID,
        RECONSUME_TIME,
        MAX_RECONSUME_TIMES,
        RETRY_QUEUE,
        RETRY_OFFSET,
        RETRY_SINCE,
        DLQ_SINCE,
        DLQ_REASON,
        WAITED_AT,
        WAIT_STORE_OK,
    )
)
"""Properties added to a retry or a dead letter, which are removed when it is resent."""
