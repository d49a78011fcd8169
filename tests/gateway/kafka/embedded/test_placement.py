from tests.gateway.kafka.admin import NODE_ID, Admin
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.topics.placement import CoordinatorType, LeaderRun, Node

THIS = Node(NODE_ID, "here", 9092)


def test_one_node_is_all_there_is() -> None:
    admin, peer = Admin(), call(1).peer
    assert admin.placement.nodes(peer) == (THIS,)
    assert admin.placement.controller_id == NODE_ID
    assert admin.placement.coordinator(CoordinatorType.GROUP, "g", peer) == THIS
    assert admin.placement.coordinator(CoordinatorType.TRANSACTION, "t", peer) == THIS


def test_it_leads_every_partition_in_the_stores_epoch() -> None:
    admin = Admin()
    topic, epoch = admin.topic("t", 5), admin.store.epochs.current
    assert admin.placement.leaders(topic, 1, 4) == (LeaderRun(1, 4, NODE_ID, epoch),)
