"""The page on compatibility, made of what the last `make compat` left behind."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.protocol.kafka.keys import ApiKey

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/reference/compatibility.md"
RESULTS = "compat-tests/results.json"
COMMANDS = "compat-tests/rocketmq-tools/commands.json"
COMPAT = "compat-tests"

HEAD = """\
<!-- Written by `make docs` from compat-tests/results.json, which `make compat` writes. -->
# Compatibility

Results of the last `make compat`: unmodified third-party clients against the server. Numbers are
passed tests. [compat-tests](../../compat-tests/README.md) describes how to add a client; the
FINDINGS of each folder list what was observed. `rockgate-sdk` is our own client, tested against the
server and against Apache RocketMQ.
"""

# What no client is asked yet, by an API that it could not do without.
NOT_YET = {
    "transactions": ApiKey.END_TXN,
    "groups of KIP-848": ApiKey.CONSUMER_GROUP_HEARTBEAT,
    "share groups": ApiKey.SHARE_FETCH,
    "SASL": ApiKey.SASL_HANDSHAKE,
    "ACLs": ApiKey.CREATE_ACLS,
}

SDK = "Asked by the SDK"
"""The list that our own client's tests stand in: every broker has it, and is a column."""

Results = Mapping[str, Any]


def render() -> str:
    """The page as it must be now."""
    results = load(ROOT / RESULTS)
    parts = [HEAD, "\n".join(run_lines(results)), "\n".join(client_lines(results))]
    parts += ["\n".join(matrix_lines(results))]
    parts += ["\n".join(sdk_lines(results))]
    parts += ["\n".join(own_suite_lines(results))]
    parts += ["\n".join(lines) for lines in own_lists(results)]
    parts += ["\n".join(command_lines(load_commands(ROOT / COMMANDS)))]
    parts += ["\n".join(not_run_lines(results)), "\n".join(not_yet_lines())]
    return "\n".join(f"{part.rstrip()}\n" for part in parts if part)


def load(path: Path) -> Results:
    """The results; none yet is an empty page."""
    if not path.is_file():
        return {"features": [], "clients": {}}
    found: Results = json.loads(path.read_text(encoding="utf-8"))
    return found


def run_lines(results: Results) -> Iterator[str]:
    """When the last whole run was, and what is not from it."""
    run = results.get("run")
    if not run:
        return
    suites = run["suites"]
    minutes = sum(each["seconds"] for each in suites.values()) / 60
    yield (
        f"The last whole run began at {run['began']}, tested `{run['commit']}` and took "
        f"{minutes:,.0f} minutes. Of its {len(suites)} suites "
        f"{sum(each['outcome'] == 'passed' for each in suites.values())} passed."
    )
    for name, each in suites.items():
        if each["outcome"] != "passed":
            yield f"`{name}`: {each['outcome']}."
    alone = [name for name, entry in results["clients"].items() if entry.get("run") != run["began"]]
    if alone:
        yield f"\nRun by themselves, before or after it: {', '.join(alone)}."


def client_lines(results: Results) -> Iterator[str]:
    """Which clients there are."""
    yield "| client | version | date | passed | failed | not run |"
    yield "|---|---|---|--:|--:|--:|"
    for entry in results["clients"].values():
        cells = [cell for title in entry["lists"].values() for cell in title.values()]
        held = sum(cell["passed"] for cell in cells)
        failed = sum(len(cell["failed"]) for cell in cells)
        left = sum(sum(cell["not_run"].values()) for cell in cells)
        link = f"[{entry['name']}](../../{COMPAT}/{entry['folder']}/FINDINGS.md)"
        yield f"| {link} | {entry['version']} | {entry['date']} | {held} | {failed} | {left} |"
    run = {entry["folder"] for entry in results["clients"].values()}
    for folder in sorted(client_folders() - run):
        yield f"| [{folder}](../../{COMPAT}/{folder}/FINDINGS.md) | | not run yet | | | |"


def client_folders() -> set[str]:
    """Every folder that is a client: it has findings."""
    return {path.parent.name for path in (ROOT / COMPAT).glob("*/FINDINGS.md")}


def matrix_lines(results: Results) -> Iterator[str]:
    """Features that any client may have, beside the clients that were asked."""
    asked = {
        name: entry["lists"][""]
        for name, entry in results["clients"].items()
        if "" in entry["lists"]
    }
    if not asked:
        return
    yield "## Features\n"
    yield f"| feature | {' | '.join(asked)} |"
    yield f"|---|{':-:|' * len(asked)}"
    for feature in results["features"]:
        row = [cell_text(cells.get(feature)) for cells in asked.values()]
        yield f"| {feature} | {' | '.join(row)} |"


def cell_text(cell: Mapping[str, Any] | None) -> str:
    """How a feature did with a client."""
    if cell is None:
        return "-"
    if cell["failed"]:
        return f"**{len(cell['failed'])} failed**"
    left = sum(cell["not_run"].values())
    if not cell["passed"]:
        return "not run"
    return f"{cell['passed']}, {left} not run" if left else str(cell["passed"])


def sdk_lines(results: Results) -> Iterator[str]:
    """What our own client has asked of each broker, beside each other."""
    brokers = {
        entry["version"].removeprefix("with "): entry["lists"][SDK]
        for _, entry in sorted(results["clients"].items(), reverse=True)
        if SDK in entry["lists"]
    }
    if not brokers:
        return
    yield "## The SDK on each broker\n"
    yield f"| what | {' | '.join(brokers)} |"
    yield f"|---|{':-:|' * len(brokers)}"
    for what in dict.fromkeys(what for cells in brokers.values() for what in cells):
        row = [cell_text(cells.get(what)) for cells in brokers.values()]
        yield f"| {what} | {' | '.join(row)} |"


def own_suite_lines(results: Results) -> Iterator[str]:
    """How clients' own suites did, on the server and on Apache Kafka."""
    suites = results.get("own_suites")
    if not suites:
        return
    yield "## Clients' own suites, on the server and on Apache Kafka\n"
    yield "The whole suite, what is excluded from our list of tests that must pass included.\n"
    yield "| suite | broker | date | passed | failed | left out by the suite |"
    yield "|---|---|---|--:|--:|--:|"
    for client, brokers in suites.items():
        for broker, counts in sorted(brokers.items(), reverse=True):
            failed, skipped = len(counts["failed"]), len(counts["skipped"])
            counted = f"{counts['passed']} | {failed} | {skipped}"
            yield f"| {client} | {broker} | {counts['date']} | {counted} |"
    for client, brokers in suites.items():
        for broker, counts in sorted(brokers.items(), reverse=True):
            if counts["failed"]:
                yield f"\n{client} on {broker} failed: {', '.join(counts['failed'])}."


def own_lists(results: Results) -> Iterator[list[str]]:
    """What one client alone has: a list for each of its titles."""
    for name, entry in results["clients"].items():
        for title, cells in entry["lists"].items():
            if title and title != SDK:
                lines = [f"## {title}: {name}\n", "| what | passed |", "|---|:-:|"]
                lines += [f"| {what} | {cell_text(cell)} |" for what, cell in cells.items()]
                yield lines


COMMAND_HEAD = """\
## mqadmin, command by command

Every command of the tool is run on the server and on the Apache broker of its version, in the same
state and with the same words
([commands.toml](../../compat-tests/rocketmq-tools/commands.toml)).

- **same**: both do it, and what they print has the same meaning.
- **refused**: the broker does it; we answer with a text that says why we do not.
- **neither**: the broker, started by itself and with its defaults, refuses it as well.
- **differs**: both do it, in the way that the last column describes.
"""


def load_commands(path: Path) -> Results:
    """The outcomes of mqadmin's commands by version."""
    if not path.is_file():
        return {}
    found: Results = json.loads(path.read_text(encoding="utf-8"))
    return found


def command_lines(versions: Results) -> Iterator[str]:
    """What became of each command of mqadmin, beside the versions of the tool."""
    if not versions:
        return
    yield COMMAND_HEAD
    for version, entry in versions.items():
        count = len({row["run"].split()[0] for row in entry["rows"]})
        yield f"- {version}: {count} commands, {entry['date']}"
    yield f"\n| command | {' | '.join(versions)} | why |"
    yield f"|---|{'---|' * len(versions)}---|"
    rows = [
        (each["run"].split()[0], name, each) for name in versions for each in versions[name]["rows"]
    ]
    for command in sorted({command for command, _, _ in rows}, key=str.lower):
        cells = []
        for version in versions:
            found = [row["outcome"] for name, of, row in rows if (name, of) == (command, version)]
            cells.append(", ".join(dict.fromkeys(found)) or "-")
        whys = dict.fromkeys(
            row["why"] for name, _, row in rows if name == command and "why" in row
        )
        why = "; ".join(whys).replace("|", chr(92) + "|")
        yield f"| `{command}` | {' | '.join(cells)} | {why} |"


def not_run_lines(results: Results) -> Iterator[str]:
    """Why tests did not run."""
    reasons = [
        (name, feature, reason)
        for name, entry in results["clients"].items()
        for cells in entry["lists"].values()
        for feature, cell in cells.items()
        for reason in cell["not_run"]
    ]
    if not reasons:
        return
    yield "## Not run, and why\n"
    yield "| client | what | why |"
    yield "|---|---|---|"
    for name, feature, reason in reasons:
        yield f"| {name} | {feature} | {reason.replace('|', chr(92) + '|')} |"


def not_yet_lines() -> Iterator[str]:
    """What the server does not have, so that no client is asked."""
    served = {row.key for row in HANDLERS}
    missing = [what for what, key in NOT_YET.items() if key not in served]
    if missing:
        yield "## Not tested, because the server does not support it yet\n"
        yield f"{', '.join(missing)}. [protocol.md](protocol.md) lists what is supported."
