"""The sentence of an error says once what it is about."""

from rockgate.cli.client.kafka.errors import Refused
from rockgate.protocol.kafka.errors import ErrorCode


def test_what_an_error_is_about_stands_before_its_reason() -> None:
    error = Refused(ErrorCode.NOT_COORDINATOR, "ask another broker").about("group billing")
    assert str(error) == "Group billing: ask another broker (NOT_COORDINATOR)."
    place = Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved").at(("orders", 3))
    assert str(place) == "Topic orders partition 3: moved (NOT_LEADER_OR_FOLLOWER)."


def test_a_message_that_names_it_is_not_given_the_name_again() -> None:
    error = Refused(ErrorCode.GROUP_ID_NOT_FOUND, "Group nobody not found.").about("group nobody")
    assert str(error) == "Group nobody not found (GROUP_ID_NOT_FOUND)."
    exists = Refused(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a' already exists.").about("topic a")
    assert str(exists) == "Topic 'a' already exists (TOPIC_ALREADY_EXISTS)."
    another = Refused(ErrorCode.INVALID_CONFIG, "Topic config 'b' is unknown.").about("topic a")
    assert str(another) == "Topic a: Topic config 'b' is unknown (INVALID_CONFIG)."
