"""What `mypy --strict` says of programs that use the SDK as it is installed, from a wheel.

The environment is a new one, filled without a network: the wheel by the installer, and links to
the base dependencies that are installed here.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from tests.house.checkout import ROOT
from tests.house.test_packaging import BASE_DEPENDENCIES

PROGRAM = ROOT / "tests" / "house" / "user_program.py"

IMPORTS = """
from collections.abc import Sequence
from rockgate.sdk import Admin, Consumer, ConsumerSettings, LitePullConsumer, Message, Producer
from rockgate.sdk import Received
from rockgate.sdk.blocking import BlockingConsumer, BlockingProducer
from rockgate.sdk.blocking import BlockingLitePullConsumer, BlockingPullConsumer
"""
# A mistake, and the code of the error that mypy has for it.
MISTAKES = {
    "a body that is text": ('Message("orders", "one tea")', "arg-type"),
    "a key that is a number": ('Message("orders", b"tea", keys=[7])', "list-item"),
    "a setting that is none": ("ConsumerSettings(retries=3)", "call-arg"),
    "a send of bytes": (
        'async def f(p: Producer) -> None:\n    await p.send(b"one tea")',
        "arg-type",
    ),
    "a blocking poll that is awaited": (
        "async def f(c: BlockingLitePullConsumer) -> None:\n    await c.poll()",
        "misc",
    ),
    "a blocking pull of a topic": (
        "def f(c: BlockingPullConsumer) -> None:\n    c.pull('orders', 0)",
        "arg-type",
    ),
    "a group that is missing": ('Consumer("127.0.0.1:9876")', "call-arg"),
    "a body that is used as text": (
        "async def f(c: Consumer) -> None:\n    async for m in c:\n        m.body.encode()",
        "attr-defined",
    ),
    "a listener of one message that takes many": (
        "def f(c: Consumer) -> None:\n    @c.on('orders')\n"
        "    async def g(messages: Sequence[Received]) -> None: ...",
        "type-var",
    ),
    "a batch listener that takes one message": (
        "def f(c: Consumer) -> None:\n    @c.on('orders', batch=8)\n"
        "    async def g(message: Received) -> None: ...",
        "type-var",
    ),
    "a batch listener that returns text": (
        "def f(c: Consumer) -> None:\n    @c.on('orders', batch=8)\n"
        "    def g(messages: Sequence[Received]) -> str: return ''",
        "type-var",
    ),
    "a poll of a topic": (
        "async def f(c: LitePullConsumer) -> None:\n    await c.poll('orders')",
        "arg-type",
    ),
    "a part of administration that is none": (
        "async def f(a: Admin) -> None:\n    await a.queues.names()",
        "attr-defined",
    ),
    "an option that a blocking consumer does not have": (
        'BlockingConsumer("127.0.0.1:9876", group="g", timeout=3)',
        "call-arg",
    ),
    "an option of another type": (
        'BlockingProducer("127.0.0.1:9876", group="g", timeout_s="3")',
        "arg-type",
    ),
}


WITH_FASTSTREAM = """
from typing import Annotated, assert_type
from faststream import Context, FastStream
from rockgate.sdk import Received, SendResult
from rockgate.sdk.faststream import RocketBatch, RocketBroker, RocketMessage, RocketReply
from rockgate.sdk.faststream import RocketRouter

router = RocketRouter("eu-", group="audit")
broker = RocketBroker("127.0.0.1:9876", group="billing", routers=[router])
parts = router.publisher("parts", batch=True)
app = FastStream(broker)

@broker.subscriber("orders", "new")
@broker.publisher("invoices", tag="due")
async def bill(order: dict[str, int], message: Annotated[RocketMessage, Context()]) -> str:
    assert_type(message.raw_message, Received)
    return str(order["cents"])

@router.subscriber("orders", batch=True, max_records=10)
async def audit(orders: list[dict[str, int]], message: Annotated[RocketBatch, Context()]) -> None:
    assert_type(message.raw_message, tuple[Received, ...])

async def main() -> None:
    assert_type(await broker.publish_batch("a", "b", topic="orders"), list[SendResult])
    assert_type(await parts.publish("a", "b", key="o-1"), list[SendResult])
    assert_type(await broker.publish({"cents": 250}, "orders", tag="new", key="o-1"), SendResult)
    assert_type(await broker.request("price?", "prices"), RocketReply)
    await app.run()
"""


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the wheel and its base dependencies."""
    return environment(wheel, tmp_path_factory.mktemp("typed") / "venv", BASE_DEPENDENCIES)


def environment(wheel: Path, folder: Path, dependencies: Iterable[str]) -> Path:
    """The interpreter of a new environment with the wheel and links to what is installed here."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    install = ("pip", "install", "--quiet", "--offline", "--no-index", "--no-deps")
    run(sys.executable, "-m", "uv", *install, "--python", python, wheel)
    [packages] = folder.glob("lib/python*/site-packages")
    for name in dependencies:
        installed = distribution(name)
        for top in {
            path.parts[0]
            for path in installed.files or ()
            if path.parts[0] not in ("..", "__pycache__")
        }:
            (packages / top).symlink_to(Path(str(installed.locate_file(top))))
    return python


@pytest.fixture(scope="module")
def told(python: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of every mistake, each in a program of its own; asked once, for it is slow."""
    folder = tmp_path_factory.mktemp("mistakes")
    for number, (lines, _) in enumerate(MISTAKES.values()):
        (folder / f"mistake_{number}.py").write_text(IMPORTS + lines + "\n")
    return checked(python, folder).stdout.splitlines()


def test_a_program_over_the_whole_sdk_is_strictly_typed(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    answer = checked(python, tmp_path)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_a_program_with_faststream_is_strictly_typed(wheel: Path, tmp_path: Path) -> None:
    dependencies = BASE_DEPENDENCIES | closure("faststream", "pydantic")
    python = environment(wheel, tmp_path / "venv", dependencies)
    (tmp_path / "program.py").write_text(WITH_FASTSTREAM)
    answer = checked(python, tmp_path)
    assert (answer.returncode, answer.stdout) == (0, "")


@pytest.mark.parametrize(("number", "name"), list(enumerate(MISTAKES)), ids=MISTAKES)
def test_a_mistake_is_found_by_the_type_checker(number: int, name: str, told: list[str]) -> None:
    _, code = MISTAKES[name]
    here = [
        line for line in told if line.startswith(f"mistake_{number}.py") and "note:" not in line
    ]
    assert len(here) == 1, "\n".join(told)
    assert here[0].endswith(f"[{code}]")


def test_a_program_of_the_new_environment_sees_the_wheel(python: Path, tmp_path: Path) -> None:
    program = "import rockgate.sdk, rockgate.sdk.blocking as b; print(b.__file__)"
    answer = run(python, "-c", program, folder=tmp_path)
    assert answer.stdout.startswith(str(python.parent.parent))


def closure(*names: str) -> set[str]:
    """Distributions and all that they need, without what only their extras do."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        try:
            required = distribution(name).requires or ()
        except PackageNotFoundError:
            continue  # for another Python or system
        if name not in found:
            found.add(name)
            plain = (line for line in required if "extra ==" not in line)
            waiting += [re.split(r"[^\w.-]", line)[0].replace("_", "-") for line in plain]
    return found


def checked(python: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What mypy says of programs, with nothing of this checkout or its configuration in sight."""
    flags = ("--strict", "--no-error-summary", "--config-file", os.devnull)
    cache = ("--cache-dir", python.parent.parent / "mypy")
    programs = sorted(path.name for path in folder.glob("*.py"))
    mypy = (sys.executable, "-m", "mypy", *flags, *cache, "--python-executable", python)
    return run(*mypy, *programs, folder=folder, may_fail=True)


def run(
    *command: str | Path, folder: Path | None = None, may_fail: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command without this environment's paths."""
    names = ("PATH", "HOME", "TMPDIR")
    result = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name in names},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert may_fail or result.returncode == 0, result.stderr
    return result
