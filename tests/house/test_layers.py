"""Who may import whom: the contracts of pyproject.toml hold, and each of them can fail."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.house.checkout import (
    ROOT,
    SOURCE_ROOMS,
    imported_names,
    module_name,
    parse,
    python_files,
)

# `construct` has no types and raises errors of its own, so it stays behind the modules that turn
# its declarations into our values. A package stands for all its modules; the layout modules of
# remoting will join this list.
MAY_IMPORT_CONSTRUCT = {
    "rockgate.protocol.entry",
    "rockgate.protocol.kafka.primitives",
    "rockgate.protocol.kafka.schema",
}

GATEWAY_PACKAGES = (
    *("compose", "rocketmq", "kafka", "remoting", "http", "visibility", "groups", "topics"),
    *(
        "compaction",
        "transcode",
        "delay",
        "security",
        "storage",
        "telemetry",
        "settings",
        "replication",
        "net",
        "batches",
        "runtime",
    ),
)

CLI_PACKAGES = ("commands", "app", "text", "admin", "client")

# The smallest house on which every contract of pyproject.toml can be checked.
SMALL_HOUSE = (
    "protocol/rockgate/protocol/__init__.py",
    "protocol/rockgate/protocol/entry.py",
    "protocol/rockgate/protocol/kafka/__init__.py",
    "protocol/rockgate/protocol/remoting/__init__.py",
    "protocol/rockgate/protocol/remoting/connection.py",
    "store/rockgate/store/__init__.py",
    "store/rockgate/store/config.py",
    "store/rockgate/store/errors.py",
    "store/rockgate/store/inside.py",
    "store/rockgate/store/api/__init__.py",
    "store/rockgate/store/api/topics.py",
    "gateway/rockgate/gateway/__init__.py",
    *(f"gateway/rockgate/gateway/{package}/__init__.py" for package in GATEWAY_PACKAGES),
    "sdk/rockgate/sdk/__init__.py",
    "sdk/rockgate/sdk/admin/__init__.py",
    "sdk/rockgate/sdk/blocking/__init__.py",
    "sdk/rockgate/sdk/client/__init__.py",
    "sdk/rockgate/sdk/consumer/__init__.py",
    "sdk/rockgate/sdk/faststream/__init__.py",
    "sdk/rockgate/sdk/producer/__init__.py",
    "pipeline/rockgate/pipeline/__init__.py",
    "cli/rockgate/cli/__init__.py",
    *(f"cli/rockgate/cli/{package}/__init__.py" for package in CLI_PACKAGES),
    "console/rockgate/console/__init__.py",
)

# What is allowed in it, and would break a contract that forbade too much.
SMALL_HOUSE_IMPORTS = {
    "gateway/rockgate/gateway/compose/__init__.py": "import rockgate.gateway.groups\n",
    "gateway/rockgate/gateway/compose/app.py": "import rockgate.store.inside\n",
    "gateway/rockgate/gateway/storage/__init__.py": (
        "import rockgate.store.api.topics\n"
        "import rockgate.store.config\n"
        "import rockgate.store.errors\n"
    ),
    "gateway/rockgate/gateway/rocketmq/client.py": "import rockgate.sdk.client\n",
    "store/rockgate/store/api/topics.py": "import rockgate.store.inside\n",
}

# Contract, as it is named in pyproject.toml -> imports that must break it: (module, import).
BREAKS = {
    "rooms: console over cli, gateway and pipeline, those over sdk and store, over protocol": [
        ("cli/rockgate/cli/__init__.py", "rockgate.console"),
        ("gateway/rockgate/gateway/__init__.py", "rockgate.console"),
        ("store/rockgate/store/__init__.py", "rockgate.gateway"),
        ("protocol/rockgate/protocol/__init__.py", "rockgate.store"),
        ("gateway/rockgate/gateway/__init__.py", "rockgate.cli"),
        ("gateway/rockgate/gateway/__init__.py", "rockgate.pipeline"),
        ("sdk/rockgate/sdk/__init__.py", "rockgate.store"),
    ],
    "the store knows the entry's envelope and nothing else of protocol": [
        ("store/rockgate/store/__init__.py", "rockgate.protocol.kafka"),
        ("store/rockgate/store/__init__.py", "rockgate.protocol.remoting"),
    ],
    "the envelope is a leaf": [
        ("protocol/rockgate/protocol/entry.py", "rockgate.protocol.kafka"),
    ],
    "sans-IO: protocol never waits, dials or logs": [
        ("protocol/rockgate/protocol/kafka/__init__.py", "asyncio"),
        ("protocol/rockgate/protocol/entry.py", "logging"),
        ("protocol/rockgate/protocol/remoting/__init__.py", "time"),
    ],
    "the sdk installs alone: it never reaches the server's rooms": [
        ("sdk/rockgate/sdk/__init__.py", "rockgate.store"),
        ("sdk/rockgate/sdk/__init__.py", "uvloop"),
    ],
    "the sdk: frameworks and blocking faces over administration, consumers, producers, clients": [
        ("sdk/rockgate/sdk/admin/__init__.py", "rockgate.sdk.faststream"),
        ("sdk/rockgate/sdk/admin/__init__.py", "rockgate.sdk.blocking"),
        ("sdk/rockgate/sdk/client/__init__.py", "rockgate.sdk.producer"),
        ("sdk/rockgate/sdk/producer/__init__.py", "rockgate.sdk.consumer"),
        ("sdk/rockgate/sdk/consumer/__init__.py", "rockgate.sdk.admin"),
    ],
    "RocketMQ's client exists once, in the sdk": [
        ("cli/rockgate/cli/__init__.py", "rockgate.protocol.remoting.connection"),
    ],
    "the command line: commands over administration, which prints nothing, over the wires": [
        ("cli/rockgate/cli/admin/__init__.py", "rockgate.cli.text"),
        ("cli/rockgate/cli/admin/__init__.py", "rockgate.cli.app"),
        ("cli/rockgate/cli/client/__init__.py", "rockgate.cli.admin"),
        ("cli/rockgate/cli/app/__init__.py", "rockgate.cli.commands"),
    ],
    "the console shares administration and its wires with the command line, and no commands": [
        ("console/rockgate/console/__init__.py", "rockgate.cli.commands"),
        ("console/rockgate/console/__init__.py", "rockgate.cli.app"),
        ("console/rockgate/console/__init__.py", "rockgate.store"),
        ("console/rockgate/console/__init__.py", "rockgate.pipeline"),
        ("console/rockgate/console/__init__.py", "rockgate.gateway.compose"),
    ],
    "the pipeline speaks Kafka's wire through Spark, as any user would": [
        ("pipeline/rockgate/pipeline/__init__.py", "rockgate.protocol"),
    ],
    "no packages form a circle, at any depth": [
        ("gateway/rockgate/gateway/groups/__init__.py", "rockgate.gateway.compose"),
    ],
    "the gateway: composition over both wires, both over what they share": [
        ("gateway/rockgate/gateway/kafka/__init__.py", "rockgate.gateway.remoting"),
        ("gateway/rockgate/gateway/kafka/__init__.py", "rockgate.gateway.rocketmq"),
        ("gateway/rockgate/gateway/remoting/__init__.py", "rockgate.gateway.kafka"),
        ("gateway/rockgate/gateway/net/__init__.py", "rockgate.gateway.kafka"),
        ("gateway/rockgate/gateway/runtime/__init__.py", "rockgate.gateway.net"),
    ],
    "of the gateway only registration and what serves a RocketMQ cluster are clients": [
        ("gateway/rockgate/gateway/kafka/__init__.py", "rockgate.sdk"),
        ("gateway/rockgate/gateway/compose/__init__.py", "rockgate.sdk"),
    ],
    "a gateway in front of a RocketMQ cluster has no store": [
        ("gateway/rockgate/gateway/rocketmq/__init__.py", "rockgate.store.api.topics"),
        ("gateway/rockgate/gateway/rocketmq/__init__.py", "rockgate.store.errors"),
    ],
    "outside composition the gateway knows the store by its interface": [
        ("gateway/rockgate/gateway/kafka/__init__.py", "rockgate.store.inside"),
        ("gateway/rockgate/gateway/remoting/__init__.py", "rockgate.store.inside"),
        ("gateway/rockgate/gateway/storage/__init__.py", "rockgate.store"),
    ],
}


def test_every_contract_holds() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


def test_a_house_without_a_forbidden_import_passes(tmp_path: Path) -> None:
    build_small_house(tmp_path)
    result = lint_imports(tmp_path)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("contract", "module", "name"),
    [(contract, *broken) for contract, breaks in BREAKS.items() for broken in breaks],
)
def test_a_forbidden_import_breaks_its_contract(
    tmp_path: Path, contract: str, module: str, name: str
) -> None:
    build_small_house(tmp_path)
    (tmp_path / module).write_text(f"import {name}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert f"{contract} BROKEN" in unwrapped(result.stdout)


def test_every_contract_is_shown_to_fail() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["name"] for contract in config["tool"]["importlinter"]["contracts"]}
    assert contracts == BREAKS.keys()


def test_construct_stays_behind_the_modules_that_declare_layouts() -> None:
    importers = {
        module_name(path)
        for path in python_files(*SOURCE_ROOMS)
        if any(name.split(".")[0] == "construct" for name in imported_names(parse(path)))
    }
    assert {name for name in importers if not may_import_construct(name)} == set()


def test_a_package_that_declares_layouts_speaks_for_its_modules() -> None:
    assert may_import_construct("rockgate.protocol.kafka.schema.reference")
    assert not may_import_construct("rockgate.protocol.kafka.schemas")
    assert not may_import_construct("rockgate.protocol.kafka")


@pytest.mark.parametrize(
    "source",
    ["import construct", "from construct import Struct", "def f():\n    import construct.core"],
)
def test_an_import_of_construct_is_seen_wherever_it_stands(tmp_path: Path, source: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(source)
    assert any(name.split(".")[0] == "construct" for name in imported_names(parse(module)))


def test_a_path_gives_the_name_it_is_imported_by() -> None:
    assert module_name(Path("store/rockgate/store/log/flusher.py")) == "rockgate.store.log.flusher"
    assert module_name(Path("store/rockgate/store/__init__.py")) == "rockgate.store"


def may_import_construct(module: str) -> bool:
    return any(f"{module}.".startswith(f"{allowed}.") for allowed in MAY_IMPORT_CONSTRUCT)


def build_small_house(root: Path) -> None:
    for name in SMALL_HOUSE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    for module, text in SMALL_HOUSE_IMPORTS.items():
        (root / module).write_text(text)
    (root / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the house at `root`, whose rooms come before any installed ones."""
    rooms = os.pathsep.join(str(root / room) for room in SOURCE_ROOMS)
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": rooms, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def unwrapped(text: str) -> str:
    return " ".join(text.split())
