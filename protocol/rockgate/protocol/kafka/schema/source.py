"""A builder of Python source that records which field each line belongs to.

The generated codecs do not track the current field, which would slow down every field. When one of
them fails, the number of the failing line gives the field's path, and the loop counters give the
indexes in it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, TracebackType
from typing import Any


class Source:
    """Indented lines of a function, and the names they refer to."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._paths: list[tuple[str, ...]] = []
        self._depth = 0
        self._unique = 0

    def add(self, line: str, *paths: str) -> None:
        """Append a line that works on the field at the path given, or on several in a row."""
        self._lines.append("    " * self._depth + line)
        self._paths.append(paths)

    @contextmanager
    def block(self, opening: str, *paths: str) -> Iterator[None]:
        """Append `opening` and indent what is added inside."""
        self.add(opening, *paths)
        self._depth += 1
        yield
        self._depth -= 1

    def unique(self, stem: str) -> str:
        """A name that is unique in this function."""
        self._unique += 1
        return f"{stem}{self._unique}"

    def constant(self, stem: str, value: Any) -> str:
        """A name for `value`; the same value gets the same name."""
        for name, known in self.names.items():
            if known is value or (type(known) is type(value) and known == value):
                return name
        name = self.unique(stem)
        self.names[name] = value
        return name

    def compile(self, function: str, title: str) -> tuple[Any, "LineMap"]:
        """Run the source once; returns the function it defines and the map of its lines."""
        code = compile("\n".join(self._lines) + "\n", f"<{title}>", "exec")
        scope = dict(self.names)
        exec(code, scope)
        made = scope[function]
        return made, LineMap(made.__code__, tuple(self._paths))

    @property
    def text(self) -> str:
        """The source so far, for people and tests."""
        return "\n".join(self._lines)


class LineMap:
    """Maps a failure inside one generated function to the paths of the fields being processed."""

    def __init__(self, code: CodeType, paths: tuple[tuple[str, ...], ...]) -> None:
        self._code = code
        self._paths = paths

    def locate(self, error: BaseException) -> tuple[list[str], dict[str, Any]]:
        """The paths, indexes filled in, and the function's variables when it failed."""
        at: TracebackType | None = error.__traceback__
        while at is not None:
            if at.tb_frame.f_code is self._code:
                found = dict(at.tb_frame.f_locals)
                paths = self._paths[at.tb_lineno - 1]
                return [path.format_map(found) for path in paths], found
            at = at.tb_next
        return [], {}
