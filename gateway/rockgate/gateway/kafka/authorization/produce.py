"""The guard of Produce: WRITE on the topics, and on the transactional id of transactional batches.

The shortcut asks for itself. A request of very many topics is decided in slices; meanwhile no later
request of its connection is started, so that batches keep their order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Final

from rockgate.gateway.kafka.authorization.asking import Asking
from rockgate.gateway.kafka.authorization.guards import STEP_COUNT, Context
from rockgate.gateway.kafka.handlers.produce import Produce
from rockgate.gateway.kafka.produce.requests import Produced, close_on_error
from rockgate.gateway.kafka.request.chunked import Turn, at_once
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Shortcut
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.produce import TOPIC_IDS, ProducedPartition, ProducedTopic
from rockgate.protocol.kafka.messages.produce import ProduceRequest, TopicProduceData
from rockgate.protocol.kafka.records.batch import is_transactional

AT_ONCE_MAX: Final = 1_000
"""Topics that are decided at once."""


class ProduceGuard:
    """Appends what the client may write, and refuses the rest."""

    def __init__(self, handler: Produce, context: Context) -> None:
        self._handler = handler
        self._context = context

    def handle(self, request: ProduceRequest, call: Call) -> Produced | Awaitable[Produced]:
        """Append what is allowed."""
        asking = self._context.asking(request, call)
        if len(request.topic_data) > AT_ONCE_MAX:
            return self._handle_many(asking, request, call)
        refused = at_once(self._divide(asking, request, call))
        return self._append(request, call, refused)

    @property
    def shortcut(self) -> Shortcut:
        """The handler's, which asks itself."""
        return self._handler.shortcut

    def refuse(self, request: ProduceRequest, code: ErrorCode) -> Produced:
        """The handler's refusal."""
        return self._handler.refuse(request, code)

    async def _handle_many(self, asking: Asking, request: ProduceRequest, call: Call) -> Produced:
        for data in request.topic_data:
            for each in data.partition_data:
                # The connection's own buffer may be used again before this is done.
                each.records = None if each.records is None else bytes(each.records)
        turn, peer = Turn(), call.peer
        peer.reading_count += 1
        try:
            work = self._divide(asking, request, call)
            while True:
                try:
                    next(work)
                except StopIteration as done:
                    refused: list[ProducedTopic] = done.value
                    break
                if turn.is_over:
                    await turn.next()
            produced = self._append(request, call, refused)
        finally:
            peer.reading_count -= 1
            peer.resume()
        return produced if isinstance(produced, Produced) else await produced

    def _divide(
        self, asking: Asking, request: ProduceRequest, call: Call
    ) -> Generator[None, None, list[ProducedTopic]]:
        """Leave in the request what is allowed; the results of the rest."""
        allowed: list[TopicProduceData] = []
        refused: list[ProducedTopic] = []
        is_checked = False
        for at, data in enumerate(request.topic_data):
            if not is_checked and _is_transactional(data):
                is_checked = True
                _check_transaction(asking, request)
            code = _refusal(asking, data, call.version)
            if code is None:
                allowed.append(data)
            else:
                partitions = [ProducedPartition(each.index, code) for each in data.partition_data]
                refused.append(ProducedTopic(data.name, data.topic_id, partitions))
            if at % STEP_COUNT == STEP_COUNT - 1:
                yield
        if refused:
            request.topic_data = allowed
        return refused

    def _append(
        self, request: ProduceRequest, call: Call, refused: list[ProducedTopic]
    ) -> Produced | Awaitable[Produced]:
        if not refused:
            return self._handler.handle(request, call)
        produced = self._handler.handle(request, call)
        if isinstance(produced, Produced):
            return _with(produced, refused)
        return _with_later(produced, refused)


async def _with_later(produced: Awaitable[Produced], refused: list[ProducedTopic]) -> Produced:
    return _with(await produced, refused)


def _with(produced: Produced, refused: list[ProducedTopic]) -> Produced:
    if produced.is_silent:
        close_on_error(refused)
    return Produced([*produced.topics, *refused], produced.is_silent)


def _is_transactional(data: TopicProduceData) -> bool:
    return any(
        each.records is not None and is_transactional(each.records) for each in data.partition_data
    )


def _check_transaction(asking: Asking, request: ProduceRequest) -> None:
    code: ErrorCode | None = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.transactional_id is not None:
        type_ = AclResourceType.TRANSACTIONAL_ID
        code = asking.refusal(AclOperation.WRITE, type_, request.transactional_id)
    if code is not None:
        raise RequestError(code, code.meaning)


def _refusal(asking: Asking, data: TopicProduceData, version: int) -> ErrorCode | None:
    if version >= TOPIC_IDS:
        return asking.refusal_by_id(AclOperation.WRITE, asking.catalog.find_id(data.topic_id))
    return asking.refusal(AclOperation.WRITE, AclResourceType.TOPIC, data.name)
