"""Packages show the design: few modules each, and tests in the same places."""

from collections import Counter

from tests.house.checkout import ROOT, SOURCE_ROOMS, python_files

MODULES_MAX = 13
TABLES = {
    "protocol/rockgate/protocol/kafka/messages",
    "bench",
    "bench/requests",
    "gateway/rockgate/gateway/kafka/handlers",
    "gateway/rockgate/gateway/remoting/processors",
    "cli/rockgate/cli/commands",
    "console/rockgate/console/pages",
}
"""Packages whose list of files is a table: one module a row, and in bench a question."""


def test_a_package_has_at_most_about_a_dozen_modules() -> None:
    counts = Counter(
        path.parent.as_posix()
        for path in python_files(*SOURCE_ROOMS, "bench")
        if path.name != "__init__.py" and path.parent.as_posix() not in TABLES
    )
    assert {folder: count for folder, count in counts.items() if count > MODULES_MAX} == {}


def test_every_table_is_a_package() -> None:
    assert {folder for folder in TABLES if not (ROOT / folder / "__init__.py").is_file()} == set()


def test_a_folder_of_tests_has_a_package_of_its_name() -> None:
    folders = {path.parent for room in SOURCE_ROOMS for path in python_files(f"tests/{room}")}
    missing = set()
    for folder in folders:
        room, *below = folder.parts[1:]
        if not (ROOT / room / "rockgate" / room).joinpath(*below).is_dir():
            missing.add(folder.as_posix())
    assert missing == set()
