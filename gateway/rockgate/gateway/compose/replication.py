"""Assembles replication: a primary's listener for its standbys, and a standby's following.

A standby learns over its connection that its log has to be cut or copied. For that the store must
be closed, so the server stops, `mend` does it, and the server starts again in the same process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from rockgate.gateway.compose.config import Config
from rockgate.gateway.net.address import CLOSED, Address, socket_address
from rockgate.gateway.net.listening.endpoint import Endpoint, is_loopback
from rockgate.gateway.replication.config import ReplicationConfig
from rockgate.gateway.replication.copying import Copy, Empty, ask
from rockgate.gateway.replication.feeding import Feeding
from rockgate.gateway.replication.following import AGAIN_SECONDS, Follower, Mending, Standing
from rockgate.gateway.replication.session import ReplicaRefused
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.runtime.identity import Identity, identify
from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.protocol.replication.frames import EpochMark
from rockgate.store.errors import StoreError
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.replication.copying import Copying, clear, is_unfinished
from rockgate.store.replication.cutting import cut
from rockgate.store.replication.following import Following
from rockgate.store.replication.sending import SentLog
from rockgate.store.store import Store

log = logging.getLogger(__name__)

STANDBY = "standby"
"""A file that marks the data directory of a standby: without `--replica-of` it does not start."""
SECRET_BYTES_MIN = 16
STANDBY_NODE_ID = 2


def is_standby(config: Config) -> bool:
    """Say whether this server follows another one."""
    return not config.replication.replica_of.is_closed


def as_standby(config: Config) -> Config:
    """The settings of a standby: it shows what is committed, and registers with no name server."""
    if not is_standby(config):
        return config
    return replace(
        config,
        store=replace(config.store, flush="sync"),
        remoting=replace(config.remoting, name_servers=""),
    )


def refuse_exposed(config: ReplicationConfig) -> None:
    """Refuse to speak to other machines without a secret; StartError says what to do."""
    for name, address in (("listen", config.listen), ("replica_of", config.replica_of)):
        if address.is_closed or is_loopback(address.host) or config.secret_file is not None:
            continue
        raise StartError(
            f"replication.{name} at {address} is of another machine, and the log holds whatever"
            " clients wrote. Set replication.secret_file on both sides, or use a loopback address."
        )
    if not config.listen.is_closed and not config.replica_of.is_closed:
        raise StartError(
            "A standby has no standbys of its own: set one of replication.listen and"
            " replication.replica_of."
        )


def secret_of(config: ReplicationConfig) -> bytes:
    """The first line of the secret's file; empty without one."""
    path = config.secret_file
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            secret = file.readline(4096).strip()
    except OSError as error:
        raise StartError(f"Cannot read {path}: {error.strerror or error}.") from error
    if len(secret) < SECRET_BYTES_MIN:
        raise StartError(f"The secret in {path} has fewer than {SECRET_BYTES_MIN} bytes.")
    return secret


# Before the store is opened


async def prepare(config: Config, data_dir: Path) -> None:
    """Make sure that the directory may be opened as what this server is; a standby may wait here.

    A new standby learns its cluster from the primary, and an unfinished copy is begun anew.
    """
    refuse_exposed(config.replication)
    mark = data_dir / STANDBY
    if not is_standby(config):
        if mark.exists():
            raise StartError(
                f"{data_dir} is a standby's. Start it with --replica-of; or, to make it a server of"
                f" its own, which forks it from its primary, remove {mark}."
            )
        return
    if not mark.exists():
        if (data_dir / "commitlog").exists():
            raise StartError(
                f"{data_dir} has the log of a server of its own. A standby begins with an empty"
                " directory."
            )
        await asyncio.to_thread(_mark, mark)
    if not (data_dir / "identity.json").exists():
        await _introduce(config, data_dir)
    if is_unfinished(DiskDirectory(data_dir)):
        await _copy(config, data_dir)


def _mark(mark: Path) -> None:
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


async def mend(config: Config, data_dir: Path, outcome: Mending) -> None:
    """Cut the log, or begin a copy; the store is closed."""
    directory = DiskDirectory(data_dir)
    try:
        if outcome.is_copy:
            await asyncio.to_thread(clear, directory)
        else:
            await asyncio.to_thread(cut, directory, outcome.cut, config.store.segment_bytes)
    except (StoreError, OSError) as error:
        raise StartError(f"Cannot cut the log in {data_dir} at {outcome.cut:,}: {error}") from error


async def _introduce(config: Config, data_dir: Path) -> None:
    """Learn the cluster's id from the primary, and write it down."""
    node_id = STANDBY_NODE_ID if config.server.node_id is None else config.server.node_id
    while True:
        empty = Empty("", node_id, config.store.segment_bytes)
        if await _asked(config, empty) and empty.start.done():
            break
        await asyncio.sleep(AGAIN_SECONDS)
    start = empty.start.result()
    if start.node == node_id:
        raise StartError(f"The primary is node {node_id} too: set another server.node_id.")
    identify(data_dir, node_id, start.cluster)


async def _copy(config: Config, data_dir: Path) -> None:
    """Copy the primary's snapshot and log, with as many attempts as it takes."""
    identity = identify(data_dir, config.server.node_id)
    segment_bytes = config.store.segment_bytes
    while True:
        made: list[Copying] = []

        def begin(start: int, made: list[Copying] = made) -> Copy | None:
            if start:
                made.append(Copying(DiskDirectory(data_dir), segment_bytes, start))
            return made[0] if made else None

        empty = Empty(identity.cluster_id, identity.node_id, segment_bytes, begin)
        try:
            await _asked(config, empty)
            if made and made[0].is_complete:
                await asyncio.to_thread(made[0].finish)
                return
            if empty.start.done() and not made:
                # The primary's log starts at 0: an empty store follows all of it.
                (data_dir / "copying").unlink()
                return
        except (StoreError, OSError) as error:
            log.warning("copying failed: %s", error)
        finally:
            for each in made:
                each.close()
        await asyncio.sleep(AGAIN_SECONDS)


async def _asked(config: Config, empty: Empty) -> bool:
    """Connect once; say whether the primary was reached. StartError if it refuses for good."""
    primary = config.replication.replica_of
    try:
        reason = await ask(primary, empty, secret_of(config.replication))
    except (OSError, TimeoutError) as error:
        log.warning("waiting for the primary at %s: %s", primary, error or "timeout")
        return False
    if isinstance(reason, ReplicaRefused):
        raise StartError(f"The primary at {primary} refuses this standby: {reason}")
    if not empty.complete.done():
        log.info("primary=%s answered: %s", primary, reason)
    return True


# With an open store


class _Own:
    """What a standby says of itself."""

    def __init__(self, store: Store, identity: Identity) -> None:
        self._store = store
        self._identity = identity

    def standing(self) -> Standing:
        """Return it as it is now."""
        store, identity = self._store, self._identity
        epochs = [EpochMark(*each) for each in store.epochs.all]
        size, start = store.config.segment_bytes, store.log.start
        newest, committed = store.epochs.current, store.commit.position
        return Standing(
            identity.cluster_id, identity.node_id, size, newest, start, committed, epochs
        )


class ReplicationAssembly:
    """The part of a server that replicates; a server by itself has one that does nothing."""

    def __init__(self, config: ReplicationConfig, identity: Identity, store: Store) -> None:
        self._config = config
        self._identity = identity
        self._store = store
        self._feeding: Feeding | None = None
        self._following: Following | None = None
        self._follower: Follower | None = None
        self.endpoints: list[Endpoint] = []

    async def open(self, resources: AsyncExitStack) -> None:
        """Listen for standbys, or follow; `resources` ends it."""
        if not self._config.replica_of.is_closed:
            self._follow(resources)
        elif not self._config.listen.is_closed:
            await self._listen(resources)

    @property
    def wake(self) -> Callable[[], None] | None:
        """Called after appends; None without a listener."""
        return None if self._feeding is None else self._feeding.wake

    @property
    def outcome(self) -> asyncio.Future[Mending] | None:
        """Why the store has to be closed, once it has."""
        return None if self._follower is None else self._follower.outcome

    @property
    def failure(self) -> str:
        """Why this standby does not follow."""
        return "" if self._follower is None else self._follower.failure

    async def _listen(self, resources: AsyncExitStack) -> None:
        config, loop = self._config, asyncio.get_running_loop()
        feeding = self._feeding = Feeding(
            SentLog(self._store),
            cluster=self._identity.cluster_id,
            node=self._identity.node_id,
            secret=secret_of(config),
            config=config,
            clock=loop,
        )
        self._store.attach(pinned=feeding.pinned)
        try:
            server = await loop.create_server(
                feeding.session, config.listen.host, config.listen.port
            )
        except OSError as error:
            reason = f"Cannot listen on {config.listen} (replication): {error.strerror or error}."
            raise StartError(reason) from error
        resources.callback(feeding.close)
        resources.callback(server.close)
        bound = socket_address(server.sockets[0].getsockname())
        self.endpoints = [Endpoint(protocol="replication", address=bound)]

    def _follow(self, resources: AsyncExitStack) -> None:
        config = self._config
        try:
            following = self._following = Following(self._store)
        except StoreError as error:
            raise StartError(f"Cannot follow: {error}") from error
        resources.callback(following.stop)
        own = _Own(self._store, self._identity)
        self._follower = Follower(following, own, config.replica_of, secret_of(config))
        resources.push_async_callback(self._follower.close)

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        if self._feeding is not None:
            page.add(metrics.CLUSTER_ROLE, 1, "primary")
            for session in self._feeding.sessions:
                if session.is_started:
                    lag = self._feeding.sent.end - session.applied
                    page.add(metrics.CLUSTER_LAG, lag, str(session.node))
        elif self._follower is not None:
            page.add(metrics.CLUSTER_ROLE, 1, "standby")
            page.add(metrics.CLUSTER_FOLLOWING, int(self._follower.is_connected))
            page.add(metrics.CLUSTER_LAG, self._follower.lag_bytes, str(self._identity.node_id))
        else:
            return
        page.add(metrics.CLUSTER_EPOCH, self._store.epochs.current)
        page.add(metrics.CLUSTER_COMMITTED, self._store.commit.position)
        yield


def with_ports(config: Config, addresses: dict[str, Address]) -> Config:
    """The settings with the ports that were bound, so that another start has them again."""
    for name in ("kafka", "remoting", "namesrv", "http"):
        section, bound = getattr(config, name), addresses.get(name, CLOSED)
        if section.listen.port == 0 and not section.listen.is_closed and not bound.is_closed:
            listen = replace(section.listen, port=bound.port)
            config = replace(config, **{name: replace(section, listen=listen)})
    return config
