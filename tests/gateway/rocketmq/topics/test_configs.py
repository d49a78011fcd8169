import pytest

from rockgate.gateway.kafka.configs.checks import TOPICS
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.topics.configs import CLUSTER_TOPICS


@pytest.mark.parametrize("value", ["SimpleCQ", "BatchCQ"])
def test_the_type_of_queues_is_known_to_a_cluster_alone(value: str) -> None:
    assert CLUSTER_TOPICS.read_all([("queue.type", value)]) == {"queue.type": value}
    with pytest.raises(RequestError, match="Unknown topic config"):
        TOPICS.read_all([("queue.type", value)])


def test_another_type_of_queues_is_refused_and_kafkas_configs_are_checked_as_always() -> None:
    with pytest.raises(RequestError):
        CLUSTER_TOPICS.read_all([("queue.type", "RocksDB")])
    lags = [("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")]
    with pytest.raises(RequestError):
        CLUSTER_TOPICS.read_all(lags)
