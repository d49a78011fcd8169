from typing import Any

import pytest
from tests.protocol.kafka.samples import sample
from tests.protocol.kafka.values import VERSIONS, version_id

from rockgate.protocol.kafka.messages.metadata import MetadataResponse
from rockgate.protocol.kafka.schema import Array, declaration_of, encode, field, message, struct
from rockgate.protocol.kafka.schema.decoder import decoder_source, make_decoder

PLENTY = 1 << 30


@pytest.mark.parametrize(("message_type", "version"), VERSIONS, ids=version_id)
def test_the_decoder_that_counts_exactly_reads_the_same_value(
    message_type: type[Any], version: int
) -> None:
    value = sample(message_type, version)
    body = encode(value, version)
    for exact in (False, True):
        decoder, _ = make_decoder(declaration_of(message_type), version, exact=exact)
        assert decoder(memoryview(body), len(body), PLENTY) == (value, len(body))


def test_neighbours_of_constant_size_and_the_next_length_are_read_by_one_call() -> None:
    text = decoder_source(declaration_of(MetadataResponse), 12).text
    (line,) = (line.strip() for line in text.splitlines() if "leader_epoch" in line)
    targets = line.split(" = ")[0].replace(" ", "").rstrip(",").split(",")
    assert [target.split(".")[-1] for target in targets[:4]] == [
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
    ]
    assert len(targets) == 5


def test_an_array_of_elements_without_bytes_cannot_be_declared_for_it_has_no_bound() -> None:
    @struct
    class Nothing:
        pass

    @message(versions="0", flexible="none")
    class Bottomless:
        items: list[Nothing] = field(Array(Nothing))

    with pytest.raises(TypeError, match="elements of items can be empty"):
        make_decoder(declaration_of(Bottomless), 0)
