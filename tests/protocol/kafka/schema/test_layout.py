from typing import Any

import pytest
from tests.protocol.kafka.samples import sample
from tests.protocol.kafka.values import VERSIONS, version_id

from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest
from rockgate.protocol.kafka.schema import declaration_of, encode
from rockgate.protocol.kafka.schema.layout import (
    layout_base,
    layout_memory,
    layout_size_min,
    message_layout,
    struct_layout,
)


def test_a_layout_sorts_the_fields_of_a_version() -> None:
    layout = message_layout(declaration_of(FetchRequest), 15)
    assert [spec.name for spec in layout.present][:3] == ["max_wait_ms", "min_bytes", "max_bytes"]
    assert [spec.name for spec in layout.tagged] == ["cluster_id", "replica_state"]
    assert [spec.name for spec in layout.absent] == ["replica_id"]


def test_a_version_that_does_not_exist_has_no_layout() -> None:
    with pytest.raises(ValueError, match="FetchRequest has versions 4-18, not 19"):
        message_layout(declaration_of(FetchRequest), 19)


@pytest.mark.parametrize(("message", "version"), VERSIONS, ids=version_id)
def test_no_body_is_smaller_than_the_least_size(message: type[Any], version: int) -> None:
    layout = message_layout(declaration_of(message), version)
    assert layout_size_min(layout) <= len(encode(message(), version))
    assert layout_size_min(layout) <= len(encode(sample(message, version), version))


def test_the_least_size_counts_a_length_for_everything_that_has_one() -> None:
    plain = struct_layout(FetchPartition, 4, flexible=False)
    flexible = struct_layout(FetchPartition, 12, flexible=True)
    assert layout_size_min(plain) == 4 + 8 + 4
    assert layout_size_min(flexible) == 4 + 4 + 8 + 4 + 8 + 4 + 1


def test_the_most_memory_is_more_than_the_empty_struct() -> None:
    layout = struct_layout(FetchPartition, 12, flexible=True)
    assert layout_base(layout) == 32 + 8 * 8
    assert layout_memory(layout) > layout_base(layout)
