"""The page on Kafka's protocol says what the code says."""

from docs import protocol

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS


def test_every_handler_is_a_module_of_its_own_name() -> None:
    for row in HANDLERS:
        assert (protocol.ROOT / protocol.FOLDER / protocol.file_name(row.key)).is_file()


def test_every_api_and_every_config_is_on_the_page_once() -> None:
    text = protocol.render()
    for row in HANDLERS:
        assert text.count(f"/{protocol.file_name(row.key)})") == 1
    for name in TOPIC_CONFIGS:
        assert text.count(f"\n| `{name}` |") == 1


def test_what_is_served_and_what_is_advertised_are_distinguished() -> None:
    (line,) = (line for line in protocol.api_lines() if "[Produce]" in line)
    assert line.endswith("| 3-13 | 0-13 | 9+ |")


def test_a_config_without_effect_stands_under_that_heading() -> None:
    text = protocol.render()
    effective, ours, idle = (text.index(f"### {title}") for title in HEADINGS)
    for name, config in TOPIC_CONFIGS.items():
        place = text.index(f"\n| `{name}` |")
        if config.is_ours:
            assert ours < place < idle
        elif config.has_effect:
            assert effective < place < ours
        else:
            assert place > idle


def test_departures_are_read_out_of_a_handler_s_docstring() -> None:
    source = '"""X.\n\nDeparts from Kafka\n- One thing\n  on two lines.\n- Another.\n\nMore.\n"""'
    assert list(protocol.departures(source)) == ["One thing on two lines.", "Another."]
    assert list(protocol.departures('"""X."""')) == []


HEADINGS = ("With an effect", "Our own", "Without an effect here")
