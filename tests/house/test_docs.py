"""The pages tell the truth: generated ones are current, links lead somewhere, commands exist.

A fenced block whose language is followed by `run` (as in ```` ```sh run ````) is executed, in an
empty folder and with this environment's commands first on PATH. With `run server` it is executed
against a server of its own; the default addresses in its text become that server's.
"""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from docs import filemap, generate
from tests.house.checkout import ROOT, SIDE_ROOMS, SOURCE_ROOMS, python_files
from tests.house.markdown import (
    Block,
    anchored_links,
    anchors,
    blocks,
    links,
    make_targets,
    named_links,
    pages,
    rockgate_commands,
)
from tests.house.snippets import DEFAULT_ADDRESSES, GUIDES, addressed, run_block
from typer.testing import CliRunner

from rockgate.cli.commands import app

GATEWAY = "rockgate.gateway"
LINES_MAX = {"README.md": 75, "docs/architecture.md": 200}
NAMED_SETTING = re.compile(r"`([a-z]+\.[a-z_]+)`")
NAMED_METRIC = re.compile(r"`(rockgate_[a-z_]+)`")
NAMED_MODULE = re.compile(r"`(rockgate(?:\.\w+)+)`")
NAMED_PATH = re.compile(
    rf"`((?:{'|'.join(map(re.escape, (*SOURCE_ROOMS, *SIDE_ROOMS)))})/[\w./-]+)`"
)
PAGE_NAME = re.compile(r"docs/[a-z0-9/-]+\.md")
SHELLS = {"sh", "bash", "console"}
BLOCKS = [block for page in pages() for block in blocks(page)]
SHELL_BLOCKS = [block for block in BLOCKS if block.language in SHELLS]
# test_guides.py runs the guides, each as a whole.
RUN_BLOCKS = [block for block in BLOCKS if "run" in block.words and block.page.parent != GUIDES]


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert name not in generate.stale_pages(), "run `make docs`"


def test_check_names_a_stale_page_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text("old")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "PAGES", {"page.md": lambda: "new", "other.md": lambda: "new"})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "stale page.md\nstale other.md\n"
    assert (tmp_path / "page.md").read_text() == "old"
    assert generate.main([]) == 0
    assert capsys.readouterr().out == "wrote page.md\nwrote other.md\n"
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    missing = [target for target in links(page) if not (ROOT / page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    missing = [
        (target, heading)
        for target, heading in anchored_links(page)
        if heading not in anchors(page.parent / target if target else page)
    ]
    assert missing == []


def test_every_page_that_a_module_names_is_there() -> None:
    named = {
        (str(path), name)
        for path in python_files(*SOURCE_ROOMS, *SIDE_ROOMS)
        for name in PAGE_NAME.findall((ROOT / path).read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert sorted(each for each in named if not (ROOT / each[1]).is_file()) == []


# A decision says what things were called when it was taken.
@pytest.mark.parametrize(
    "page", [each for each in pages() if "decisions" not in each.parts], ids=str
)
def test_a_link_that_names_a_module_leads_to_that_module(page: Path) -> None:
    astray = [(name, to) for name, to in named_links(page) if not f"/{to}".endswith(f"/{name}")]
    assert astray == []


@pytest.mark.parametrize("block", SHELL_BLOCKS, ids=str)
def test_every_make_command_in_a_page_is_a_target(block: Block) -> None:
    assert set(make_targets(block.text)) <= makefile_targets()


@pytest.mark.parametrize(
    ("subcommand", "flags"),
    [command for block in SHELL_BLOCKS for command in rockgate_commands(block.text)],
)
def test_every_rockgate_command_in_a_page_is_in_its_help(subcommand: str, flags: list[str]) -> None:
    text = rockgate_help(subcommand)
    assert [flag for flag in flags if not re.search(rf"{flag}\b", text)] == []


@pytest.mark.parametrize("block", RUN_BLOCKS, ids=str)
def test_a_block_that_says_it_runs_does(block: Block, tmp_path: Path) -> None:
    text = block.text
    if "server" not in block.words:
        run_block(block, text, tmp_path)
        return
    from tests.gateway.server import RunningServer

    listeners = (DEFAULT_ADDRESSES["remoting"], DEFAULT_ADDRESSES["namesrv"])
    with RunningServer(
        tmp_path, rocketmq=any(listener in text for listener in listeners)
    ) as server:
        run_block(block, addressed(text, server), tmp_path)


def test_the_architecture_draws_the_layers_of_the_gateway_as_the_contract_has_them() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each.get("containers") == [GATEWAY]]
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert re.findall(r'layer\d\["([^"]+)"\]', text) == layers


@pytest.mark.parametrize(("page", "lines_max"), LINES_MAX.items())
def test_a_page_that_everyone_reads_is_short(page: str, lines_max: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines_max


@pytest.mark.parametrize("page", [p for p in pages() if "decisions" not in p.parts], ids=str)
def test_every_module_and_path_that_a_page_names_is_there(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = [name for name in NAMED_PATH.findall(text) if not (ROOT / name).exists()]
    assert paths == []
    assert [name for name in NAMED_MODULE.findall(text) if not is_module(name)] == []


def test_every_setting_and_metric_that_a_page_names_is_there() -> None:
    reference = (ROOT / "docs/reference/operations.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^### \[([a-z]+)\]$", reference, re.M))
    known = set(re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", reference, re.M))
    metrics = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    known |= set(NAMED_METRIC.findall(metrics))
    # Of Kafka's clients and tools, and so in pages about them.
    known |= {"security.protocol", "replication.factor"}
    named = [
        (str(page), name)
        for page in pages()
        if page.parts[0] in ("README.md", "docs") and "decisions" not in page.parts
        for text in [(ROOT / page).read_text(encoding="utf-8")]
        for name in [
            *(each for each in NAMED_SETTING.findall(text) if each.split(".")[0] in sections),
            *NAMED_METRIC.findall(text),
        ]
    ]
    assert len(sections) > 5
    assert [each for each in named if each[1] not in known] == []


def test_the_file_map_names_every_module_once() -> None:
    text = (ROOT / filemap.PAGE).read_text(encoding="utf-8")
    map_text = text.split(filemap.BEGIN)[1].split(filemap.END)[0]
    named = re.findall(r"\]\(\.\./\.\./([^)]+\.py)\)", map_text)
    expected = [str(p) for p in python_files(*filemap.ROOMS) if p.name != "__init__.py"]
    assert sorted(named) == sorted(expected)


def test_the_file_map_says_what_the_first_sentence_of_a_module_says(tmp_path: Path) -> None:
    (tmp_path / filemap.PAGE).parent.mkdir(parents=True)
    (tmp_path / filemap.PAGE).write_text(f"above\n{filemap.BEGIN}\nold\n{filemap.END}\nbelow\n")
    room = tmp_path / "store" / "rockgate" / "store"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text('"""The store."""')
    (room / "flush.py").write_text('"""Makes it\nlast, v1.0 | v2. And more.\n\nMore still."""')
    page = filemap.render(tmp_path)
    assert "**`store/rockgate/store/`** The store.\n" in page
    link = "[flush.py](../../store/rockgate/store/flush.py)"
    assert f"| {link} | Makes it last, v1.0 \\| v2. |\n" in page
    assert page.startswith("above\n")
    assert page.endswith("\nbelow\n")
    assert "old" not in page


def test_a_module_that_does_not_say_what_it_is_for_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("pass\n")
    with pytest.raises(filemap.MapError, match=r"x\.py does not say what it is for"):
        filemap.purpose(tmp_path / "x.py")


def test_commands_are_found_in_a_block() -> None:
    text = "$ make serve\nmake test ARGS=-x  # make no\nrockgate serve \\\n  --data-dir=d # --x\n"
    assert make_targets(text) == ["serve", "test"]
    assert list(rockgate_commands(text)) == [("serve", ["--data-dir"])]
    text = "rockgate log check --json\nrockgate produce t 'x' --acks 1 | rockgate no\n"
    text += "rockgate && rockgate acls add"
    assert list(rockgate_commands(text)) == [
        ("log check", ["--json"]),
        ("produce t", ["--acks"]),
        ("", []),
        ("acls add", []),
    ]


def is_module(name: str) -> bool:
    """Whether this is a module or package of ours, or the name of something in one."""
    _, room, *parts = name.split(".")
    folder = ROOT / room / "rockgate" / room
    for index, part in enumerate(parts):
        if (folder / f"{part}.py").is_file():
            return True
        if not (folder / part).is_dir():
            return index == len(parts) - 1 and index > 0 and (folder / "__init__.py").is_file()
        folder /= part
    return folder.is_dir()


@cache
def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


@cache
def rockgate_help(subcommand: str) -> str:
    """What `rockgate SUBCOMMAND --help` prints; an unknown subcommand fails here."""
    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"})
    result = runner.invoke(app, [*subcommand.split(), "--help"])
    assert result.exit_code == 0, result.output
    return result.stdout
