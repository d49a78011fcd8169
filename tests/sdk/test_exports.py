"""What `from rockgate.sdk import …` offers, and what that loads."""

import subprocess
import sys

import pytest

import rockgate.sdk

LOAD = "import sys, {module}; print(*sys.modules, sep='\\n')"


@pytest.mark.parametrize("name", rockgate.sdk.__all__)
def test_every_public_name_is_there(name: str) -> None:
    found = getattr(rockgate.sdk, name)
    assert found.__name__ == name
    assert name in dir(rockgate.sdk)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Prodcuer'"):
        getattr(rockgate.sdk, "Prodcuer")  # noqa: B009 # the type checker knows that it is missing


@pytest.mark.parametrize(
    "module", ["rockgate.sdk.client.connection", "rockgate.cli.client.remoting.connection"]
)
def test_a_connection_is_loaded_without_the_producer(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stdout.split())
    assert module in loaded
    assert {name for name in loaded if name.startswith("rockgate.sdk.producer")} == set()
    assert "rockgate.sdk.client.client" not in loaded
