"""What a run leaves behind: for each client, how many tests of each feature held, failed or did not
run and why. docs/compatibility.py makes a page of it.

Results are written under ROCKGATE_COMPAT_RESULTS, which `make compat` sets, and only for clients
all of whose tests were selected and ran: a part says nothing about a client.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from behaviours.features import FEATURES, MODULES
from suites import RUN_VARIABLE, results_at

VARIABLE = "ROCKGATE_COMPAT_RESULTS"
BESIDE_VARIABLE = "ROCKGATE_COMPAT_BESIDE"
"""Set for a second run of a folder with another version: the results of the first one stay."""
COMPAT = Path(__file__).resolve().parents[1]


def of_item(item: pytest.Item) -> tuple[str, str, str] | None:
    """(client, list, feature) of a test; the list is empty for features of all clients.

    A test without a mark is in a list under the name of its module.
    """
    if COMPAT not in item.path.parents:
        return None
    mark = item.get_closest_marker("feature")
    name = item.path.stem.removeprefix("test_").replace("_", " ")
    feature, *title = mark.args if mark else (name, MODULES)
    callspec = getattr(item, "callspec", None)
    if callspec is not None and feature.startswith("{"):
        feature = str(callspec.params[feature.strip("{}")])
    cls = getattr(item, "cls", None)
    module = getattr(item, "module", None)
    client = getattr(cls, "client", None) or getattr(module, "CLIENT", item.path.parent.name)
    return client, title[0] if title else "", feature


class Recording:
    """A pytest plugin."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[str, str, str]] = {}
        self._folders: dict[str, str] = {}
        self._unheard: dict[str, set[str]] = {}
        self._found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            place = of_item(item)
            if place is not None:
                self._places[item.nodeid] = place
                self._folders[place[0]] = item.path.parent.name
                self._unheard.setdefault(place[0], set()).add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        place = self._places.get(report.nodeid)
        if place is None or (report.when != "call" and report.outcome == "passed"):
            return
        client, title, feature = place
        self._unheard[client].discard(report.nodeid)
        cell = (
            self._found.setdefault(client, {})
            .setdefault(title, {})
            .setdefault(feature, {"passed": 0, "failed": [], "not_run": {}})
        )
        if report.outcome == "passed":
            cell["passed"] += 1
        elif report.outcome == "failed":
            cell["failed"].append(report.nodeid.rpartition("::")[2])
        else:
            reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
            reason = " ".join(reason.removeprefix("Skipped: ").split())
            cell["not_run"][reason] = cell["not_run"].get(reason, 0) + 1

    def pytest_sessionfinish(self) -> None:
        with results_at(self._path) as results:
            results["features"] = FEATURES
            results["clients"] = self._joined(results["clients"])

    def _joined(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        """The clients with what this run found."""
        clients = {
            name: entry for name, entry in kept.items() if (COMPAT / entry["folder"]).is_dir()
        }
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        whole = {each: lists for each, lists in self._found.items() if not self._unheard[each]}
        is_beside = bool(os.environ.get(BESIDE_VARIABLE))
        for client, lists in whole.items():
            name, _, version = client.partition(" ")
            folder = self._folders[client]
            # A version that is no longer tested is removed with its folder's new results.
            clients = {
                key: entry
                for key, entry in clients.items()
                if is_beside or entry["folder"] != folder or key in whole
            }
            clients[client] = {
                "name": name,
                "version": version,
                "folder": folder,
                "date": today,
                "run": os.environ.get(RUN_VARIABLE, ""),
                "lists": lists,
            }
        return dict(sorted(clients.items()))


def configure(config: pytest.Config) -> None:
    """Record this run, if that is requested and the run is complete."""
    path = os.environ.get(VARIABLE)
    if path and not config.option.keyword and not config.option.lf:
        config.pluginmanager.register(Recording(Path(path)), "compat-recording")
