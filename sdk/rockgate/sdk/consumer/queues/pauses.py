"""What of a member is paused: some topics, or everything."""

from __future__ import annotations

from collections.abc import Collection


class Pauses:
    """The topics that are paused, by their names on the wire."""

    def __init__(self) -> None:
        self._topics: set[str] = set()
        self.is_all = False
        """Everything is: the member takes no part in rounds either."""

    def pause(self, topics: Collection[str]) -> None:
        """Pull nothing of these topics, or of any; what was pulled is still delivered."""
        if topics:
            self._topics.update(topics)
        else:
            self.is_all = True

    def resume(self, topics: Collection[str]) -> None:
        """Pull them again, or everything."""
        if topics:
            self._topics.difference_update(topics)
        else:
            self.is_all = False
            self._topics.clear()

    def is_paused(self, topic: str) -> bool:
        """Whether nothing of a topic is to be pulled now."""
        return self.is_all or topic in self._topics
