"""Constants of the format: magics, flags, limits and fixed strings. Part of every log on disk."""

from typing import Final

Buffer = bytes | bytearray | memoryview

# Magics and flags are part of the format on disk: never change an existing value.
MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_BATCH: Final = 0xDAA320BB
MAGIC_BLANK: Final = 0xCBD43194

COMPRESSED: Final = 1 << 0
MULTI_TAGS: Final = 1 << 1
TRANSACTION_PREPARED: Final = 1 << 2
TRANSACTION_COMMIT: Final = 2 << 2
TRANSACTION_ROLLBACK: Final = 3 << 2
BORN_HOST_V6: Final = 1 << 4
STORE_HOST_V6: Final = 1 << 5
INNER_BATCH: Final = 1 << 7
# RocketMQ uses the bits below 1 << 12; the following are ours, and its clients ignore them.
MOVED: Final = 1 << 16
"""The entry was appended again so that its segment could be deleted; its offset is the same."""
CONTINUES: Final = 1 << 17
"""The next entry belongs to the same atomic group: recovery keeps all of it or none."""
DELAYED: Final = 1 << 18
"""The message is delayed, or some records of the batch are; readers do not get delayed ones."""
INDEXED: Final = 1 << 19
"""The keys of the batch's records are in the key index."""

BLANK_SIZE: Final = 8
TOPIC_SIZE_V1_MAX: Final = 127
TOPIC_SIZE_MAX: Final = 32767
PROPERTIES_SIZE_MAX: Final = 32767
COUNT_MAX: Final = 0x7FFFFFFF

NAME_END: Final = b"\x01"
PROPERTY_END: Final = b"\x02"
INNER_NUM: Final = b"INNER_NUM\x01"
INNER_BASE: Final = b"INNER_BASE\x01"
# No NAME_END: RocketMQ's decoders skip such a part, so no client sees it as a property.
CHECKSUM_NAME: Final = b"__ECRC="
CHECKSUM_SIZE: Final = len(CHECKSUM_NAME) + 8 + 1
HOST_SIZE_V4: Final = 8  # address 4, port 4
HOST_SIZE_V6: Final = 20  # address 16, port 4


class EntryError(ValueError):
    """The bytes at a place are not a complete, valid entry; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
