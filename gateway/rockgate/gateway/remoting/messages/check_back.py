"""Transaction checks: asks producers about half messages that are still undecided.

There is one time for each undecided half message, in a heap; nothing is read from the log before
its time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.protocol.entry import pack_properties, parse_properties
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.transactions import CheckTransactionHeader
from rockgate.protocol.remoting.message import encode as encode_message
from rockgate.protocol.remoting.properties import REAL_QUEUE_ID, REAL_TOPIC
from rockgate.store.api.clock import Clock, TrustedTime
from rockgate.store.api.folds import Journal
from rockgate.store.api.half import HALF_TOPIC, MESSAGES, Checked, Half, HalfMessages, encode

CHECKS_PER_STEP: Final = 50
RETRY_MS: Final = 10_000
"""How long after a failure a half message is checked again."""


class CheckBacks:
    """Schedules the checks of undecided half messages. Stepped by the upkeep."""

    def __init__(
        self,
        *,
        halves: Halves,
        undecided: HalfMessages,
        clients: Clients,
        journal: Journal,
        clock: Clock,
        config: RemotingConfig,
        store_host: bytes,
    ) -> None:
        self._halves = halves
        self._undecided = undecided
        self._clients = clients
        self._journal = journal
        self._clock = clock
        self._config = config
        self._host_hex = store_host.hex().upper()
        self._turns: dict[str, int] = {}
        self.check_count = 0
        self.may_check: Callable[[Caller, str], bool] | None = None
        """Whether a producer may see a message for a topic; None: all may."""
        self._trusted_time = TrustedTime(clock)
        wall_ms, now_ms = clock.now_ms(), clock.monotonic_ms()
        # Whatever the clock was when it was written: not before now, nor later than a whole
        # interval.
        self._due = [
            (now_ms + min(max(self.next_ms(half) - wall_ms, 0), self._wait_ms(half)), half.offset)
            for half in undecided.all()
        ]
        """When to check which, monotonic: setting the clock has no effect."""
        heapify(self._due)
        halves.on_prepared.append(self.watch)

    def configure(self, config: RemotingConfig) -> None:
        """Check by other times from now on; what is scheduled stays so until it is checked."""
        self._config = config

    def watch(self, half: Half) -> None:
        """Schedule the check of a half message."""
        heappush(self._due, (self._clock.monotonic_ms() + self._wait_ms(half), half.offset))

    def step(self) -> bool:
        """Check some of those that are due; returns whether there are more.

        One that fails blocks no other; the first error is raised when all have been tried.
        """
        now_ms = self._clock.monotonic_ms()
        failed: Exception | None = None
        has_more = True
        for _ in range(CHECKS_PER_STEP):
            if not self._due or self._due[0][0] > now_ms:
                has_more = False
                break
            # It stays in place until it was handled: a failure is retried.
            offset = self._due[0][1]
            try:
                next_ms = self._see_to(offset, now_ms)
            except Exception as error:  # noqa: BLE001  # a supervisor: those behind it have their turn
                failed, next_ms = failed or error, now_ms + RETRY_MS
            if next_ms is None:
                heappop(self._due)
            else:
                heapreplace(self._due, (next_ms, offset))
        if failed is not None:
            raise failed
        return has_more

    def _see_to(self, offset: int, now_ms: int) -> int | None:
        """Check a half message with its producer, or end it; return when to check again."""
        half = self._undecided.find(offset)
        if half is None or self._end_if_hopeless(half):
            return None
        self._check(half)
        return now_ms + self._config.check_interval_ms

    def next_ms(self, half: Half) -> int:
        """Return the next check of a half message, by the times in the log."""
        since_ms = half.checked_ms if half.check_count else half.prepared_ms
        return since_ms + self._wait_ms(half)

    def _wait_ms(self, half: Half) -> int:
        """Return the time until the first or the next check of a half message."""
        if half.check_count:
            return self._config.check_interval_ms
        return self._config.immune_ms if half.immune_ms < 0 else half.immune_ms

    def _end_if_hopeless(self, half: Half) -> bool:
        config = self._config
        age_ms = self._trusted_time.now_ms() - half.prepared_ms
        is_old = age_ms > config.half_reserved_ms and half.check_count > 0
        if half.check_count < config.check_times_max and not is_old:
            return False
        self._halves.give_up(half)
        return True

    def _check(self, half: Half) -> None:
        living = [
            each.caller for each in self._clients.producers(half.group) if each.caller.is_open
        ]
        if not living:
            return
        fields, body, topic = self._question(half)
        if self.may_check is not None:
            may = self.may_check
            living = [caller for caller in living if may(caller, topic)]
            if not living:
                return
        caller = self._next(half.group, living)
        caller.send_oneway(RequestCode.CHECK_TRANSACTION_STATE, fields, body)
        self.check_count += 1
        # Counted once it is sent; after a crash in between there is one check more than counted.
        self._journal.append_state(HALF_TOPIC, encode(Checked(half.offset)))

    def _next(self, group: str, living: Sequence[Caller]) -> Caller:
        """A connected producer of a group, in rotation."""
        turn = self._turns[group] = self._turns.get(group, -1) + 1
        return living[turn % len(living)]

    def _question(self, half: Half) -> tuple[dict[str, str], bytes, str]:
        """The request to a producer, and the topic that the half message is for."""
        entry, body, packed = self._halves.read(half.offset)
        properties = parse_properties(packed)
        check_properties = {**properties, "TRANSACTION_CHECK_TIMES": str(half.check_count + 1)}
        message = encode_message(
            topic=properties[REAL_TOPIC].encode(),
            body=bytes(body),
            properties=pack_properties(check_properties.items()),
            queue_id=int(properties[REAL_QUEUE_ID]),
            queue_offset=half.offset,
            position=entry.position,
            born_ms=entry.born_ms,
            born_host=entry.born_host,
            store_ms=entry.store_ms,
            store_host=entry.store_host,
            flag=entry.flag,
            sys_flag=entry.sys_flag & 0xFFFF,
            reconsume_times=entry.reconsume_times,
        )
        unique = properties.get("UNIQ_KEY", "")
        header = CheckTransactionHeader(
            topic=MESSAGES.decode(),
            tran_state_table_offset=half.offset,
            commit_log_offset=entry.position,
            msg_id=unique,
            transaction_id=properties.get("__transactionId__", unique),
            offset_msg_id=f"{self._host_hex}{entry.position:016X}",
            bname=self._config.broker_name,
        )
        return dict(headers.write(header)), message, properties[REAL_TOPIC]
