"""The labels of a set: how many there are, and which go."""

from rockgate.gateway.remoting.statistics.series import STEP_MS, Series, Span
from rockgate.gateway.remoting.statistics.table import IDLE_MS_MAX, SeriesTable

STEP = STEP_MS[Span.MINUTE]


class Labels:
    """A table of three labels, and its time."""

    def __init__(self, labels_max: int = 3) -> None:
        self.now_ms = 0
        self.table = SeriesTable[str, Series](Series, labels_max, lambda: self.now_ms)

    def count(self, *labels: str) -> None:
        for label in labels:
            self.table.at(label).times += 1

    def sample(self) -> None:
        self.now_ms += STEP
        for _ in self.table.sample(Span.MINUTE, self.now_ms):
            pass

    @property
    def names(self) -> set[str]:
        return set(self.table.rows)


def test_a_new_label_takes_the_place_of_the_one_idle_for_longest() -> None:
    labels = Labels()
    labels.count("a", "b", "c")
    labels.sample()
    labels.count("a", "c")
    labels.sample()
    labels.count("c", "d")
    assert labels.names == {"a", "c", "d"}
    assert labels.table.dropped_count == 1


def test_labels_in_use_are_not_pushed_out_by_invented_ones() -> None:
    labels = Labels(labels_max=100)
    for round_number in range(50):
        labels.count(*(f"used-{number}" for number in range(50)))
        labels.count(*(f"invented-{round_number}-{number}" for number in range(1_000)))
        labels.sample()
    assert len(labels.table) <= 100
    assert {f"used-{number}" for number in range(50)} <= labels.names
    assert labels.table.rows["used-7"].times == 50
    assert labels.table.nameless.times == labels.table.refused_count > 0


def test_a_label_that_was_counted_since_the_last_snapshot_stays() -> None:
    labels = Labels(labels_max=1)
    labels.count("a")
    labels.sample()
    labels.now_ms += STEP
    labels.count("a")
    labels.count("b")
    assert labels.names == {"a"}


def test_a_label_goes_once_all_its_windows_are_empty() -> None:
    labels = Labels()
    labels.count("a")
    labels.sample()
    labels.now_ms += IDLE_MS_MAX - STEP
    labels.sample()
    assert labels.names == {"a"}
    labels.sample()
    assert not labels.names


def test_labels_may_come_and_go_while_snapshots_are_taken() -> None:
    labels = Labels()
    labels.count("a", "b", "c")
    work = labels.table.sample(Span.MINUTE, STEP)
    next(work)
    labels.table.drop("b")
    labels.table.drop_if(lambda label: label == "c")
    labels.count("d")
    assert len(list(work)) == 0
    assert labels.names == {"a", "d"}
