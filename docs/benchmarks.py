"""The tables of docs/reference/benchmarks.md: every benchmark's newest result, bar by bar.

Only the part of the page between the two marks is written.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/reference/benchmarks.md"
BEGIN = "<!-- results: written by `make docs` from bench/results -->"
END = "<!-- end of the results -->"


def render(root: Path = ROOT) -> str:
    """The page with the results that are committed now."""
    text = (root / PAGE).read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{PAGE} must hold each mark of the results once")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    results = newest(root / "bench" / "results")
    lines = [line for path, content in results for line in result_lines(path, content)]
    return "".join([before, BEGIN, "\n\n", "\n".join(lines), "\n", END, after])


def newest(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The last result of each benchmark, by its name."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    # Names end with the date, so the last of a benchmark sorts last.
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found[content["benchmark"]] = (path, content)
    return [found[name] for name in sorted(found)]


def result_lines(path: Path, content: dict[str, Any]) -> Iterator[str]:
    """What was asked, on what, and how each bar came out."""
    machine = content["machine"]
    beside = ", ".join(f"{name} {version}" for name, version in content["peers"].items())
    yield from (f"### {content['benchmark']}", "", content["question"], "")
    yield (
        f"`{content['command']}`, {content['time'][:10]}, commit `{content['commit'][:10]}`, "
        f"{machine['cores']} cores of {machine['cpu']}, Python {machine['python']}"
        f"{f', beside {beside}' if beside else ''}. [All samples](../../bench/results/{path.name})."
    )
    yield from ("", "| what | measured | bar | |", "|---|---|---|---|")
    for bar in content["bars"]:
        limits = [
            f"{words} {bar[key]:g}"
            for key, words in (("at_least", "at least"), ("at_most", "at most"))
            if key in bar
        ]
        verdict = "holds" if bar["holds"] else "**does not hold**"
        measured = f"{bar['measured']:g} {bar['unit']}"
        yield f"| {bar['name']} | {measured} | {', '.join(limits)} | {verdict} |"
    yield ""
