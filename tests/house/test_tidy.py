"""The rules of the house that a machine can check: one that hurts is changed here, in the open."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.checkout import (
    ROOT,
    SIDE_ROOMS,
    SOURCE_ROOMS,
    files,
    parse,
    python_files,
    text_files,
)

SOURCE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
# File -> why it may be longer. Tables that a reader scans and never studies are the usual reason.
LONG_FILES: dict[str, str] = {}

BANNED_NAMES = {"utils", "util", "helpers", "common", "manager", "impl", "base", "misc"}

# The one place that may sleep: it polls a condition until a deadline, on behalf of every test.
# And simulations on virtual time, where sleeping takes none.
MAY_SLEEP = {
    Path("tests/waiting.py"),
    Path("tests/gateway/rocketmq/members/observing.py"),
    Path("tests/gateway/rocketmq/members/simulated.py"),
}

# A letter in brackets keeps each pattern from finding itself in this file.
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~}<-])/(?:wor[k]|roo[t]|tm[p]|hom[e]/\w+|User[s]/\w+)(?:/|\b)")
REGISTRY = re.compile(
    r"pyp[i]\.org|pythonhoste[d]\.org|registry\.npmj[s]|npmj[s]\.org|yarnpk[g]\.com"
    r"|repo1?\.mave[n]|mave[n]\.org|proxy\.golan[g]|crate[s]\.io"
    r"|docke[r]\.io|ghc[r]\.io|qua[y]\.io|(?<!emit-)inde[x]-url|INDE[X]_URL|GOPROX[Y]=",
)


def test_no_portion_of_the_namespace_has_an_init_file() -> None:
    """One such file would hide every other room's part of the package."""
    assert [path for path in files() if path.parts[-2:] == ("rockgate", "__init__.py")] == []


@pytest.mark.parametrize("room", SOURCE_ROOMS)
def test_a_source_room_holds_its_portion_with_types(room: str) -> None:
    assert (ROOT / room / "rockgate" / room / "__init__.py").is_file()
    assert (ROOT / room / "rockgate" / room / "py.typed").is_file()


@pytest.mark.parametrize("room", [*SOURCE_ROOMS, *SIDE_ROOMS])
def test_every_room_has_a_readme(room: str) -> None:
    assert (ROOT / room / "README.md").is_file()


def test_no_source_file_is_longer_than_it_may_be() -> None:
    counts = {str(path): line_count(path) for path in python_files(*SOURCE_ROOMS, "docs")}
    long = {name for name, count in counts.items() if count > SOURCE_LINES_MAX}
    assert long - LONG_FILES.keys() == set(), "split it, or declare it in LONG_FILES with a reason"
    assert LONG_FILES.keys() - long == set(), "declared long, but short again: take it off the list"
    assert all(LONG_FILES.values()), "a declared long file gives its reason"


def test_no_function_is_longer_than_a_screen() -> None:
    found = [
        f"{path}:{function.lineno} {function.name} has {lines} lines"
        for path in checked_code()
        for function, lines in functions(parse(path))
        if lines > FUNCTION_LINES_MAX
    ]
    assert found == []


def test_a_function_of_one_line_too_many_is_found() -> None:
    body = "\n".join(["def long():"] + ["    x = 1"] * FUNCTION_LINES_MAX)
    [(function, lines)] = functions(ast.parse(body))
    assert (function.name, lines) == ("long", FUNCTION_LINES_MAX + 1)


def test_no_module_is_named_after_nothing() -> None:
    found = [path for path in python_files() if BANNED_NAMES & set(path.with_suffix("").parts)]
    assert found == []


def test_nothing_unfinished_is_marked_in_the_text() -> None:
    assert matches(UNFINISHED) == []


def test_no_path_of_a_machine_is_written_down() -> None:
    assert matches(MACHINE_PATH) == []


def test_no_registry_is_written_down() -> None:
    """A machine's own set-up says where packages come from; the repository never does."""
    assert matches(REGISTRY) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (UNFINISHED, "# TO" + "DO: later"),
        (MACHINE_PATH, "data_dir = '/tm" + "p/x'"),
        (MACHINE_PATH, "see /hom" + "e/someone/notes"),
        (MACHINE_PATH, "file:///roo" + "t/.m2"),
        (REGISTRY, "https://pyp" + "i.org/simple"),
        (REGISTRY, "pip install --inde" + "x-url http://127.0.0.1"),
    ],
)
def test_the_patterns_find_what_they_forbid(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)


@pytest.mark.parametrize(
    "text",
    ["target/wor" + "k/x", "~/tmp/x", "/workers", "--no-emit-index-url", "${HOME}/wor" + "k/x"],
)
def test_the_patterns_leave_ordinary_text_alone(text: str) -> None:
    assert not MACHINE_PATH.search(text)
    assert not REGISTRY.search(text)


def test_no_test_sleeps() -> None:
    """Time is injected, or a condition is waited for with a deadline (tests/waiting.py)."""
    found = [
        f"{path}:{line}"
        for path in python_files("tests")
        if path not in MAY_SLEEP
        for line in sleeps(parse(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(1)",
        "from time import sleep\nsleep(0.1)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(delay)",
    ],
)
def test_a_sleep_is_found_however_it_is_written(source: str) -> None:
    assert list(sleeps(ast.parse(source)))


def test_yielding_once_to_the_loop_is_no_sleep() -> None:
    assert not list(sleeps(ast.parse("async def f():\n    await asyncio.sleep(0)")))


def checked_code() -> list[Path]:
    """All code that is ours to read: a client's program in compat-tests keeps its own shape."""
    return [path for path in python_files() if path.parts[0] != "compat-tests"]


def line_count(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            yield node, node.end_lineno - node.lineno + 1


def matches(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:80]}"
        for path, text in text_files()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def sleeps(tree: ast.Module) -> Iterator[int]:
    """The line of every call of something named sleep, except a literal `sleep(0)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        name = node.func.id if isinstance(node.func, ast.Name) else name
        is_zero = [ast.dump(argument) for argument in node.args] == [ast.dump(ast.Constant(0))]
        if name == "sleep" and not is_zero:
            yield node.lineno
