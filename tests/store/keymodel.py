"""A log of messages with keys, as a model for the tests of the key index."""

from collections.abc import Iterator
from random import Random

from rockgate.store.keys.entrykeys import Loaded
from rockgate.store.keys.keyfile import KeyFile
from rockgate.store.keys.keyindex import KeyIndex

TOPICS = (b"orders", b"orders-of-a-shop", b"%RETRY%orders")
KEYS = tuple(b"key-%d" % number for number in range(9))


class ModelLog:
    """Entries by position, oldest first; positions have gaps, like those of real entries."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.store_ms = 1_700_000_000_000
        self._entries: dict[int, Loaded] = {}

    def append(self, topic: bytes, keys: list[bytes], store_ms: int | None = None) -> int:
        """Append an entry and return its position; its time is the log's own by default."""
        position = self.end
        self._entries[position] = Loaded(
            topic, keys, self.store_ms if store_ms is None else store_ms
        )
        self.end += 50 + sum(map(len, keys))
        return position

    def append_random(self, random: Random) -> int:
        """Append an entry of any kind: with many keys or none, relocated or not."""
        self.store_ms += random.choice((0, 1, 400, 5000))
        moved_ms = (
            self.store_ms - random.choice((1, 3000, 10**9)) if random.random() < 0.1 else None
        )
        keys = random.choices(KEYS, k=random.choice((0, 1, 1, 2, 3)))
        return self.append(random.choice(TOPICS), keys, moved_ms)

    def load(self, position: int) -> Loaded | None:
        """Return the entry at a position."""
        return self._entries.get(position) if self.start <= position < self.end else None

    def truncate(self, end: int) -> None:
        """Drop everything from a position on."""
        self.end = end
        self._entries = {at: entry for at, entry in self._entries.items() if at < end}

    def positions(self) -> list[int]:
        return [at for at in self._entries if at >= self.start]

    def walk(self, start: int) -> Iterator[tuple[bytes, list[bytes], int, int]]:
        """Yield the entries from a position on, as parameters of `put`."""
        for position in self.positions():
            if position >= start:
                yield self.entry(position)

    def entry(self, position: int) -> tuple[bytes, list[bytes], int, int]:
        """The entry at a position, as parameters of `put`."""
        topic, keys, store_ms = self._entries[position]
        return topic, list(keys), position, store_ms

    def find(
        self, topic: bytes, key: bytes, begin_ms: int = 0, end_ms: int = 2**63 - 1
    ) -> list[int]:
        """The expected result of a query without a limit."""
        return [
            position
            for position in reversed(self.positions())
            for entry in [self._entries[position]]
            if entry.topic == topic and key in entry.keys and begin_ms <= entry.store_ms <= end_ms
        ]


def put_from(index: KeyIndex, log: ModelLog, start: int) -> None:
    """Dispatch the log from a position on."""
    for entry in log.walk(start):
        index.put(*entry)
    index.reached(log.end)


def every_query(index: KeyIndex, log: ModelLog) -> dict[tuple[bytes, bytes], list[int]]:
    """The results for every key, and for a missing one."""
    return {
        (topic, key): index.query(topic, key, load=log.load, limit=10_000)
        for topic in TOPICS
        for key in (*KEYS, b"no-such-key")
    }


def every_answer(log: ModelLog) -> dict[tuple[bytes, bytes], list[int]]:
    """The expected results of `every_query`."""
    return {
        (topic, key): log.find(topic, key) for topic in TOPICS for key in (*KEYS, b"no-such-key")
    }


def indexed_positions(index: KeyIndex) -> list[int]:
    """Every position in the index, in the order of its files."""
    files: list[KeyFile] = index._row
    return [file.position_at(at) for file in files for at in range(1, file.count)]
