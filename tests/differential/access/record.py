"""Records Apache Kafka's answers to the matrix: `python -m tests.differential.access.record`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.differential.access.broker import asked, broker
from tests.differential.access.cases import cells

FILE = Path(__file__).parent.with_name("recorded") / "access.json"


def main() -> None:
    """Record all cells."""
    every = cells()
    with broker(every) as kafka:
        answers = asked(kafka.address, every)
        recorded = {"answered by": f"Apache Kafka {kafka.version}", "answers": answers}
    FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
