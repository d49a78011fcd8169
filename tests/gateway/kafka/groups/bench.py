"""A single group on a test bench: a manual clock, and every response is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import cast

from rockgate.gateway.kafka.groups.classic.events import (
    Answer,
    Arm,
    Commit,
    Event,
    Join,
    Joined,
    Leave,
    Leaver,
    Left,
    MemberHeartbeat,
    Reply,
    Save,
    Sync,
    Synced,
    Wake,
)
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.protocol.kafka.errors import ErrorCode

DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = (("range", b"subscription"),)


class Bench:
    """A group and all of its responses. A waiter is a number."""

    def __init__(self, config: GroupsConfig | None = None) -> None:
        ids = count(1)
        self.group = ClassicGroup(config or GroupsConfig(), lambda prefix: f"{prefix}-{next(ids)}")
        self.now_ms = 1_000_000
        self.wake_ms: int | None = None
        self.answers: dict[int, Answer] = {}
        self.save_count = 0
        self._waiters = count(1)

    def happen(self, event: Event) -> None:
        for effect in self.group.handle(event, self.now_ms):
            if isinstance(effect, Reply):
                waiter = cast(int, effect.waiter)
                assert waiter not in self.answers, "each is answered once"
                self.answers[waiter] = effect.answer
            elif isinstance(effect, Arm):
                assert self.wake_ms is None or effect.at_ms < self.wake_ms
                self.wake_ms = effect.at_ms
            else:
                assert isinstance(effect, Save)
                self.save_count += 1

    def advance(self, milliseconds: int) -> None:
        """Let time elapse, and wake the group whenever it is due."""
        end_ms = self.now_ms + milliseconds
        while self.wake_ms is not None and self.wake_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.wake_ms)
            self.wake_ms = None
            self.happen(Wake())
        self.now_ms = end_ms

    # Requests without waiting

    def send_join(
        self,
        member_id: str = "",
        *,
        client: str = "c",
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        needs_id: bool = False,
        can_skip: bool = True,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> int:
        waiter = next(self._waiters)
        self.happen(
            Join(
                waiter=waiter,
                member_id=member_id,
                instance_id=instance,
                client_id=client,
                client_host="/host",
                session_ms=session_ms,
                rebalance_ms=rebalance_ms,
                protocol_type=protocol_type,
                protocols=protocols,
                needs_id=needs_id,
                can_skip=can_skip,
            )
        )
        return waiter

    def send_sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        waiter = next(self._waiters)
        self.happen(
            Sync(
                waiter=waiter,
                generation=self.group.generation if generation is None else generation,
                member_id=member_id,
                instance_id=instance,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                assignments=assignments or {},
            )
        )
        return waiter

    # Responses

    def joined(self, waiter: int) -> Joined:
        answer = self.answers[waiter]
        assert isinstance(answer, Joined)
        return answer

    def synced(self, waiter: int) -> Synced:
        answer = self.answers[waiter]
        assert isinstance(answer, Synced)
        return answer

    def beat(
        self, member_id: str, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        waiter = next(self._waiters)
        generation = self.group.generation if generation is None else generation
        self.happen(
            MemberHeartbeat(
                waiter=waiter, generation=generation, member_id=member_id, instance_id=instance
            )
        )
        return cast(ErrorCode, self.answers[waiter])

    def commit(
        self, member_id: str = "", generation: int = -1, instance: str | None = None
    ) -> ErrorCode:
        waiter = next(self._waiters)
        self.happen(
            Commit(waiter=waiter, generation=generation, member_id=member_id, instance_id=instance)
        )
        return cast(ErrorCode, self.answers[waiter])

    def leave(self, *leavers: tuple[str, str | None]) -> Left:
        waiter = next(self._waiters)
        self.happen(Leave(waiter=waiter, leavers=[Leaver(*each) for each in leavers]))
        return cast(Left, self.answers[waiter])

    # Groups in some state

    def preparing(self) -> int:
        """A group with one member that has joined and waits."""
        return self.send_join()

    def completing(self, *instances: str | None) -> list[str]:
        """A generation of members, none of which has synced; the first one leads."""
        waiters = [self.send_join(instance=instance) for instance in instances or (None,)]
        self.advance(DELAY_MS * (len(waiters) + 1))
        ids = [self.joined(waiter).member_id for waiter in waiters]
        assert [self.joined(waiter).code for waiter in waiters] == [0] * len(ids)
        return ids

    def stable(self, *instances: str | None) -> list[str]:
        """The same, and each has its assignment: its own id."""
        ids = self.completing(*instances)
        for member_id in reversed(ids):
            self.send_sync(member_id, {each: each.encode() for each in ids})
        return ids
