import pytest

from rockgate.cli.client.produce.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # From Kafka's own UtilsTest.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_hashes_as_in_java(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_goes_where_the_java_client_puts_it() -> None:
    from kafka.partitioner.default import murmur2 as other

    for number in range(1000):
        key = b"key-%d" % number
        assert partition_of(key, 12) == (other(key) & 0x7FFFFFFF) % 12
