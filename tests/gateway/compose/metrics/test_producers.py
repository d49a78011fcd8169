from tests.gateway.compose.metrics.test_kafka import told

from rockgate.gateway.compose.metrics.producers import RememberedSource


def test_what_is_remembered_is_counted_when_the_page_is_made() -> None:
    producers = [1, 2, 3]
    source = RememberedSource(producers=producers, transactions=[1], progress=[])
    producers.append(4)
    assert told(source) == {
        "rockgate_idempotent_producers": 4,
        "rockgate_producers_remembered": 4,
        "rockgate_transactional_ids": 1,
        "rockgate_committed_offsets": 0,
    }
