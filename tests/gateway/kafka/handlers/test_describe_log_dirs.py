import os
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.describe_log_dirs import DescribeLogDirs
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)

Topics = list[tuple[str, list[int]]] | None


def handler(admin: Admin, path: Path) -> DescribeLogDirs:
    return DescribeLogDirs(
        catalog=admin.catalog, queues=admin.store.queues, path=str(path), sizes=QueueSizes()
    )


async def ask(admin: Admin, path: Path, topics: Topics, version: int = 5) -> Any:
    asked = (
        None
        if topics is None
        else [DescribableLogDirTopic(topic=name, partitions=at) for name, at in topics]
    )
    request = DescribeLogDirsRequest(topics=asked)
    response = await seen(handler(admin, path).handle(request, call(version)), version)
    (result,) = response.results
    assert (response.error_code, result.error_code, result.log_dir) == (0, 0, str(path))
    return result


def sizes(result: Any) -> dict[str, dict[int, int]]:
    return {
        topic.name: {each.partition_index: each.partition_size for each in topic.partitions}
        for topic in result.topics
    }


@pytest.mark.parametrize("version", range(1, 6))
async def test_partitions_have_the_size_of_their_batches(tmp_path: Path, version: int) -> None:
    admin = Admin()
    admin.topic("a", 2)
    admin.topic("b")
    appended = [admin.append("a", 1, value=b"x" * 500) for _ in range(3)]
    size = sum(each.end - each.position for each in appended)
    found = await ask(admin, tmp_path, None, version)
    assert sizes(found) == {"a": {0: 0, 1: size}, "b": {0: 0}}
    assert all(
        (each.offset_lag, each.is_future_key) == (0, False)
        for topic in found.topics
        for each in topic.partitions
    )


async def test_what_is_unknown_is_left_out(tmp_path: Path) -> None:
    admin = Admin()
    admin.topic("a", 2)
    asked = [("a", [1, 9, -1]), ("none", [0]), ("a", [1])]
    assert sizes(await ask(admin, tmp_path, asked)) == {"a": {1: 0}}
    assert sizes(await ask(admin, tmp_path, [])) == {}


async def test_deleted_records_take_nothing(tmp_path: Path) -> None:
    admin = Admin()
    admin.topic("a")
    for _ in range(3):
        appended = admin.append("a")
    admin.delete_records(2, "a")
    assert sizes(await ask(admin, tmp_path, None)) == {"a": {0: appended.end - appended.position}}


async def test_the_disk_is_told_from_v4(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    result = await ask(Admin(), tmp_path, None, 4)
    assert result.total_bytes == disk.f_frsize * disk.f_blocks
    assert 0 < result.usable_bytes <= result.total_bytes
    older = await ask(Admin(), tmp_path, None, 3)
    assert (older.total_bytes, older.usable_bytes) == (-1, -1)


async def test_a_refusal_is_an_error_for_all(tmp_path: Path) -> None:
    refused = handler(Admin(), tmp_path).refuse(
        DescribeLogDirsRequest(), ErrorCode.KAFKA_STORAGE_ERROR
    )
    assert (await seen(refused, 5)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
