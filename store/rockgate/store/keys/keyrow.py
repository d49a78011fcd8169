"""The files of the key index in their directory: names, and which are contiguous."""

from __future__ import annotations

import re
from typing import Final

from rockgate.store.files.interface import Directory
from rockgate.store.keys.keyfile import KeyFile, Shape

_NAME: Final = re.compile(r"(\d{20})-(\d+)-(\d+)")


def name_of(start: int, shape: Shape) -> str:
    """Return a file's name: its start and its shape, since the settings may change later."""
    return f"{start:020d}-{shape.slot_count}-{shape.entry_count}"


def load_row(directory: Directory, log_end: int, rebuild_from: int) -> list[KeyFile]:
    """Map the contiguous files from the first needed one on; remove all others."""
    row: list[KeyFile] = []
    useless = []
    is_whole = True
    for name in directory.names():
        file = _open(directory, name) if is_whole else None
        if file is None:
            useless.append(name)
            is_whole = is_whole and not _NAME.fullmatch(name)
            continue
        if row:
            # A file that starts at the log's end may share its first message with the previous one.
            joins = file.start == row[-1].position and file.start < log_end
        else:
            joins = file.start <= min(rebuild_from, log_end)
        if joins and file.load():
            row.append(file)
            continue
        file.mapping.close()
        useless.append(name)
        is_whole = False
    for name in useless:
        directory.remove(name)
    if useless:
        directory.sync()
    return row


def _open(directory: Directory, name: str) -> KeyFile | None:
    found = _NAME.fullmatch(name)
    if not found:
        return None
    start, slot_count, entry_count = (int(digits) for digits in found.groups())
    shape = Shape(slot_count, entry_count)
    file = directory.open(name)
    size = file.size()
    file.close()
    if size != shape.size or slot_count < 1 or entry_count < 1:
        return None
    return KeyFile(directory.map(name, writable=True), shape, start)
