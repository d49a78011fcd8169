import pytest
from tests.gateway.kafka.admin import Admin

from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.topics import NewTopic


def test_a_topic_is_found_by_the_name_that_kafka_clients_know() -> None:
    admin = Admin()
    orders, retry = admin.topic("orders"), admin.topic("%RETRY%group")
    assert admin.catalog.find("orders") is orders
    assert admin.catalog.find("rmq.retry.group") is retry
    assert admin.catalog.find("%RETRY%group") is None, "no Kafka client can mean it"
    assert admin.catalog.find("nothing") is None
    assert admin.catalog.find_id(retry.id) is retry


def test_a_topic_whose_name_cannot_be_said_is_not_there() -> None:
    admin = Admin()
    hidden = admin.topic("a|b")
    assert admin.catalog.find("a|b") is None
    assert admin.catalog.find_id(hidden.id) is None
    assert list(admin.catalog) == []
    assert list(admin.catalog.names_from("")) == []


def test_names_come_in_order_from_one_on() -> None:
    admin = Admin()
    for name in ("c", "a", "%DLQ%g", "B"):
        admin.topic(name)
    assert list(admin.catalog.names_from("")) == ["B", "a", "c", "rmq.dlq.g"]
    assert list(admin.catalog.names_from("b")) == ["c", "rmq.dlq.g"]
    admin.topic("bb")
    assert list(admin.catalog.names_from("b")) == ["bb", "c", "rmq.dlq.g"]
    assert list(admin.catalog.names_from("z")) == []


@pytest.mark.parametrize("is_listed", [False, True])
def test_system_topics_are_found_by_name_and_listed_if_asked_for(*, is_listed: bool) -> None:
    admin = Admin()
    catalog = StoreCatalog(admin.store.topics, 100, lists_system_topics=is_listed)
    assert list(catalog.names_from("")) == []
    for name in ("TBW102", "__consumer_offsets"):
        admin.store.topics.create(NewTopic(name=name, queue_count=1, is_internal=True))
    listed = ["TBW102", "__consumer_offsets"] if is_listed else ["__consumer_offsets"]
    assert sorted(catalog.names_from("")) == listed
    assert sorted(topic.name for topic in catalog) == listed
    found = catalog.find("TBW102")
    assert found is not None and found.is_internal
    assert catalog.find_id(found.id) is found


def test_a_listing_made_later_knows_what_was_there_before() -> None:
    admin = Admin()
    admin.topic("b", 3)
    admin.topic("a", 2)
    later = StoreCatalog(admin.store.topics, 100)
    assert list(later.names_from("")) == ["a", "b"]
    assert later.partition_count == 5


def test_names_of_deleted_topics_go_in_time_and_none_comes_twice() -> None:
    admin = Admin()
    topics = [admin.topic(f"t{index:04}") for index in range(2000)]
    assert len(list(admin.catalog.names_from(""))) == 2000
    admin.store.topics.delete(topics[:1500])
    assert list(admin.catalog.names_from("")) == [f"t{index:04}" for index in range(1500, 2000)]
    admin.store.topics.delete([topics[1500]])
    admin.topic("t1500")
    assert list(admin.catalog.names_from("")) == [f"t{index:04}" for index in range(1500, 2000)]


def test_names_of_topics_that_come_and_go_are_not_kept_though_no_one_lists_them() -> None:
    admin = Admin()
    admin.topic("stays")
    assert list(admin.catalog.names_from("")) == ["stays"]
    most = 0
    for index in range(5000):
        admin.store.topics.delete([admin.topic(f"t{index:04}")])
        most = max(most, len(admin.catalog._sorted or ()))
    assert most <= 2002
    admin.topic("later")
    assert list(admin.catalog.names_from("")) == ["later", "stays"]


def test_a_walk_continues_while_topics_come_and_go() -> None:
    admin = Admin()
    for name in ("a", "b", "c"):
        admin.topic(name)
    walk = admin.catalog.names_from("")
    assert next(walk) == "a"
    admin.store.topics.delete([admin.get("b")])
    admin.topic("aa")
    list(admin.catalog.names_from(""))
    assert list(walk) == ["b", "c"], "whoever walks looks whether they are still there"


def test_partitions_are_counted_and_bounded() -> None:
    admin = Admin()
    catalog = StoreCatalog(admin.store.topics, 10)
    admin.topic("a", 4)
    admin.topic("a|b", 3)
    assert catalog.partition_count == 7
    admin.store.topics.grow({admin.get("a"): 6})
    assert catalog.partition_count == 9
    catalog.check_room(1)
    with pytest.raises(RequestError, match=r"topics\.partitions_max \(10\); there are 9") as caught:
        catalog.check_room(2)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    admin.store.topics.delete([admin.get("a")])
    assert catalog.partition_count == 3


def test_the_version_grows_with_every_change() -> None:
    admin = Admin()
    versions = [admin.catalog.version]
    topic = admin.topic("a")
    versions.append(admin.catalog.version)
    admin.store.topics.grow({topic: 2})
    versions.append(admin.catalog.version)
    admin.store.topics.delete([topic])
    versions.append(admin.catalog.version)
    assert sorted(set(versions)) == versions
