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


class Wish(NamedTuple):
    """What a member wants to read, and what it still owns."""

    topics: Sequence[str]
    owned: Sequence[Place] = ()


Assignment = dict[str, list[Place]]
Counts = Mapping[str, int]


def assign_range(wishes: Mapping[str, Wish], counts: Counts) -> Assignment:
    """Runs of each topic's partitions."""
    found: Assignment = {member: [] for member in wishes}
    for topic in sorted({topic for wish in wishes.values() for topic in wish.topics}):
        members = sorted(member for member, wish in wishes.items() if topic in wish.topics)
        share, extra = divmod(counts.get(topic, 0), len(members))
        at = 0
        for number, member in enumerate(members):
            size = share + (number < extra)
            found[member] += [(topic, index) for index in range(at, at + size)]
            at += size
    return found


def assign_round_robin(wishes: Mapping[str, Wish], counts: Counts) -> Assignment:
    """One partition after the other, in turn."""
    found: Assignment = {member: [] for member in wishes}
    members, turn = sorted(wishes), 0
    for place in _places(wishes, counts):
        while place[0] not in wishes[members[turn % len(members)]].topics:
            turn += 1
        found[members[turn % len(members)]].append(place)
        turn += 1
    return found


def assign_sticky(wishes: Mapping[str, Wish], counts: Counts) -> Assignment:
    """Evenly, with as few moves as that allows; what moves is left out for this round."""
    places = _places(wishes, counts)
    owner: dict[Place, str] = {}
    for member in sorted(wishes):
        for place in wishes[member].owned:
            if place in owner:
                # Two that claim the same have both lost it to a generation they do not know of.
                owner[place] = ""
            else:
                owner[place] = member
    found: Assignment = {member: [] for member in wishes}
    free = []
    for place in places:
        keeper = owner.get(place, "")
        if keeper and place[0] in wishes[keeper].topics:
            found[keeper].append(place)
        else:
            free.append(place)
    for place in free:
        found[min(_wanting(wishes, place), key=lambda m: (len(found[m]), m))].append(place)
    _balance(found, wishes)
    return {
        member: sorted(place for place in given if owner.get(place) in (None, "", member))
        for member, given in found.items()
    }


def _balance(found: Assignment, wishes: Mapping[str, Wish]) -> None:
    """Move partitions from members with many to members with few until no move helps."""
    for _ in range(sum(map(len, found.values()))):
        for giver in sorted(found, key=lambda m: (-len(found[m]), m)):
            for place in reversed(found[giver]):
                taker = min(_wanting(wishes, place), key=lambda m: (len(found[m]), m))
                if len(found[giver]) > len(found[taker]) + 1:
                    found[giver].remove(place)
                    found[taker].append(place)
                    break
            else:
                continue
            break
        else:
            return


def _places(wishes: Mapping[str, Wish], counts: Counts) -> list[Place]:
    topics = sorted({topic for wish in wishes.values() for topic in wish.topics})
    return [(topic, index) for topic in topics for index in range(counts.get(topic, 0))]


def _wanting(wishes: Mapping[str, Wish], place: Place) -> list[str]:
    return [member for member, wish in wishes.items() if place[0] in wish.topics]


ASSIGNORS: Final[Mapping[str, Callable[[Mapping[str, Wish], Counts], Assignment]]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "cooperative-sticky": assign_sticky,
}
"""By the name that goes over the wire, in the order in which we like them."""
