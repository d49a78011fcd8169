"""Names of the topics that RocketMQ itself uses, and prefixes of those that belong to groups."""

from typing import Final

AUTO_CREATE_TOPIC: Final = "TBW102"
"""The template topic that a send names for automatic creation of its topic."""
BENCHMARK_TOPIC: Final = "BenchmarkTest"
CHECKED_OUT_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
"""The topic of half messages that no producer decided."""
HALF_DECISIONS_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
LEVELS_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""The topic of messages delayed by level."""
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
TIMES_TOPIC: Final = "rmq_sys_wheel_timer"
"""The topic of messages delayed until a time of their own."""
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"

DLQ_PREFIX: Final = "%DLQ%"
RETRY_PREFIX: Final = "%RETRY%"
SYSTEM_PREFIX: Final = "rmq_sys_"
