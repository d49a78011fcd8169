from tests.gateway.kafka.admin import Admin

from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.progress import NewOffset


def test_what_is_committed_is_fetched_in_the_order_that_is_asked_for() -> None:
    admin = Admin()
    topic, progress = admin.topic("t", 3), StoreProgress(admin.store.progress)
    progress.commit("g", [NewOffset(topic.id, at, 10 + at, 4, "text", -1) for at in (2, 0)])
    found = progress.fetch("g", topic.id, [2, 1, 0])
    assert [each and (each.offset, each.leader_epoch, each.metadata) for each in found] == [
        (12, 4, "text"),
        None,
        (10, 4, "text"),
    ]
    assert list(progress.partitions_of("g")) == [(topic.id, [0, 2])]
    assert (progress.has("g"), progress.has("h"), list(progress.groups())) == (True, False, ["g"])
    assert progress.count("g", 100) == 2


def test_single_offsets_and_whole_groups_are_forgotten() -> None:
    admin = Admin()
    topic, progress = admin.topic("t", 2), StoreProgress(admin.store.progress)
    for group in ("g", "h"):
        progress.commit(group, [NewOffset(topic.id, at, 1, -1, "", -1) for at in (0, 1)])
    progress.remove("g", [(topic.id, 1)])
    assert list(progress.partitions_of("g")) == [(topic.id, [0])]
    progress.delete(["g"])
    assert list(progress.groups()) == ["h"]
