"""docs/internals/remoting.md lists the codes that are answered."""

import re
from pathlib import Path
from typing import Any

from rockgate.gateway.compose.remoting import table as remoting_table
from rockgate.gateway.remoting.nameserver import processors as nameserver

PAGE = (Path(__file__).parents[3] / "docs" / "internals" / "remoting.md").read_text(
    encoding="utf-8"
)


class Anything:
    """Has every attribute, and can be called."""

    def __getattr__(self, name: str) -> Any:
        return Anything()

    def __call__(self, *arguments: Any) -> Any:
        return Anything()


def test_every_code_on_the_page_is_answered() -> None:
    [part] = re.findall(r"<!-- codes:.*?-->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    listed = [int(code) for line in part.splitlines()[2:] for code in re.findall(r" (\d+)", line)]
    anything: Any = Anything()
    answered = [*remoting_table.table(anything), *nameserver.table(anything)]
    assert len(listed) == len(set(listed)) > 50
    assert set(listed) <= set(answered)
