"""The committed position: the flusher's on a node by itself, told where the log is replicated."""

from __future__ import annotations

import pytest
from tests.world import World

from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed
from rockgate.store.log.commit import Commit

Told = list[Exception | None]


@pytest.fixture
def world() -> World:
    world = World(StoreConfig(segment_bytes=1 << 20, populate_ahead_bytes=1 << 16, flush="sync"))
    world.topic()
    return world


def waiting(commit: Commit, position: int) -> Told:
    told: Told = []
    commit.when_committed(position, told.append)
    return told


def test_a_node_by_itself_commits_what_is_on_disk(world: World) -> None:
    commit, flusher = world.store.commit, world.store.flusher
    end = world.message().end
    assert commit.position == flusher.flushed < end
    told = waiting(commit, end)
    assert (told, commit.waiting_count) == ([], 1)
    world.store.flush()
    assert (told, commit.position) == ([None], flusher.flushed)
    assert commit.position == end


def test_a_replicated_one_commits_what_it_is_told(world: World) -> None:
    commit = world.store.commit
    commit.replicate(world.store.log.end)
    first, second = world.message(), world.message()
    told = [waiting(commit, each.end) for each in (first, second)]
    world.store.flush()
    assert (told, commit.waiting_count) == ([[], []], 2)
    assert world.bodies() == [], "what another node may not have is shown to nobody"
    assert commit.advance(first.end)
    assert told == [[None], []]
    assert world.bodies() == [b"message"]
    assert not commit.advance(first.end - 1)
    assert commit.position == first.end, "it never goes back"
    assert commit.advance(second.end)
    assert told == [[None], [None]]
    assert waiting(commit, second.end) == [None]


def test_a_failed_disk_ends_all_waiting(world: World) -> None:
    commit, failure = world.store.commit, DiskFailed("log", OSError("gone"))
    commit.replicate(world.store.log.end)
    told = waiting(commit, world.message().end)
    world.store.flusher.fail(failure)
    commit.settle()
    assert told == [failure]
    assert waiting(commit, world.store.log.end) == [failure]


def test_who_waits_for_a_primary_that_is_none_any_more_is_told(world: World) -> None:
    commit, failure = world.store.commit, ValueError("replaced")
    commit.replicate(world.store.log.end)
    told = waiting(commit, world.message().end)
    commit.end(failure)
    assert (told, commit.waiting_count) == ([failure], 0)
