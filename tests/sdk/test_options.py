"""The options that blocking classes pass on are those of the classes behind them."""

import inspect

import pytest

from rockgate.sdk import Consumer, Producer
from rockgate.sdk.options import ConsumerOptions, ProducerOptions


@pytest.mark.parametrize(
    ("made", "options", "named"),
    [
        (Producer, ProducerOptions, {"name_servers", "group", "checker"}),
        (Consumer, ConsumerOptions, {"name_servers", "group", "topics"}),
    ],
)
def test_the_options_are_the_parameters_that_a_blocking_class_does_not_name(
    made: type, options: type, named: set[str]
) -> None:
    parameters = inspect.signature(made).parameters
    expected = {name: each.annotation for name, each in parameters.items() if name not in named}
    assert {name: text(each) for name, each in options.__annotations__.items()} == expected


def text(annotation: object) -> str:
    """An annotation as it was written."""
    return str(getattr(annotation, "__forward_arg__", annotation))
