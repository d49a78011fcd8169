import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.alter_replica_log_dirs import AlterReplicaLogDirs
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

HERE = "/var/lib/rockgate"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("path", "codes"),
    [
        (HERE, [ErrorCode.NONE, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2]),
        ("/elsewhere", [ErrorCode.LOG_DIR_NOT_FOUND] * 3),
        ("", [ErrorCode.LOG_DIR_NOT_FOUND] * 3),
    ],
)
async def test_everything_is_in_the_one_directory(
    path: str, codes: list[ErrorCode], version: int
) -> None:
    admin = Admin()
    admin.topic("a")
    topics = [
        AlterReplicaLogDirTopic(name="a", partitions=[0, 9]),
        AlterReplicaLogDirTopic(name="none", partitions=[0]),
    ]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    handler = AlterReplicaLogDirs(catalog=admin.catalog, path=HERE)
    response = await seen(handler.handle(request, call(version)), version)
    assert [topic.topic_name for topic in response.results] == ["a", "none"]
    assert codes == [one.error_code for topic in response.results for one in topic.partitions]
