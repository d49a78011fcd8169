"""Dividing partitions among the members of a classic group: what the leader does.

The rules are those of Kafka's own assignors, so that it does not matter which member leads:

- `range`: for each topic by itself, members in order get runs of partitions, the first ones one
  more where it does not come out even.
- `roundrobin`: all partitions of all topics in order, to members in order who want the topic.
- `cooperative-sticky`: members keep what they own as far as loads differ by one at most. What has
  to move is not assigned in this round: its owner revokes it first and joins again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.view import Place


class MemberSubscription(NamedTuple):
    """What a member subscribes to, and what it still owns."""

    topics: Sequence[str]
    owned: Sequence[Place] = ()


Assignment = dict[str, list[Place]]
Counts = Mapping[str, int]


def assign_range(subscriptions: Mapping[str, MemberSubscription], counts: Counts) -> Assignment:
    """Runs of each topic's partitions."""
    found: Assignment = {member: [] for member in subscriptions}
    for topic in sorted(
        {topic for subscription in subscriptions.values() for topic in subscription.topics}
    ):
        members = sorted(
            member for member, subscription in subscriptions.items() if topic in subscription.topics
        )
        share, extra = divmod(counts.get(topic, 0), len(members))
        at = 0
        for number, member in enumerate(members):
            size = share + (number < extra)
            found[member] += [(topic, index) for index in range(at, at + size)]
            at += size
    return found


def assign_round_robin(
    subscriptions: Mapping[str, MemberSubscription], counts: Counts
) -> Assignment:
    """One partition to each member in turn."""
    found: Assignment = {member: [] for member in subscriptions}
    members, turn = sorted(subscriptions), 0
    for place in _places(subscriptions, counts):
        while place[0] not in subscriptions[members[turn % len(members)]].topics:
            turn += 1
        found[members[turn % len(members)]].append(place)
        turn += 1
    return found


def assign_sticky(subscriptions: Mapping[str, MemberSubscription], counts: Counts) -> Assignment:
    """Evenly, with as few moves as that allows; what moves is left out for this round."""
    places = _places(subscriptions, counts)
    owner: dict[Place, str] = {}
    for member in sorted(subscriptions):
        for place in subscriptions[member].owned:
            if place in owner:
                # Two that claim the same partition have both lost it, in a generation they missed.
                owner[place] = ""
            else:
                owner[place] = member
    found: Assignment = {member: [] for member in subscriptions}
    free = []
    for place in places:
        current = owner.get(place, "")
        if current and place[0] in subscriptions[current].topics:
            found[current].append(place)
        else:
            free.append(place)
    for place in free:
        found[min(_subscribers(subscriptions, place), key=lambda m: (len(found[m]), m))].append(
            place
        )
    _balance(found, subscriptions)
    return {
        member: sorted(place for place in given if owner.get(place) in (None, "", member))
        for member, given in found.items()
    }


def _balance(found: Assignment, subscriptions: Mapping[str, MemberSubscription]) -> None:
    """Move partitions from members with many to members with few until no move helps."""
    for _ in range(sum(map(len, found.values()))):
        for fullest in sorted(found, key=lambda m: (-len(found[m]), m)):
            for place in reversed(found[fullest]):
                emptiest = min(_subscribers(subscriptions, place), key=lambda m: (len(found[m]), m))
                if len(found[fullest]) > len(found[emptiest]) + 1:
                    found[fullest].remove(place)
                    found[emptiest].append(place)
                    break
            else:
                continue
            break
        else:
            return


def _places(subscriptions: Mapping[str, MemberSubscription], counts: Counts) -> list[Place]:
    topics = sorted(
        {topic for subscription in subscriptions.values() for topic in subscription.topics}
    )
    return [(topic, index) for topic in topics for index in range(counts.get(topic, 0))]


def _subscribers(subscriptions: Mapping[str, MemberSubscription], place: Place) -> list[str]:
    return [
        member for member, subscription in subscriptions.items() if place[0] in subscription.topics
    ]


ASSIGNORS: Final[Mapping[str, Callable[[Mapping[str, MemberSubscription], Counts], Assignment]]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "cooperative-sticky": assign_sticky,
}
"""By their names on the wire, in order of preference."""
