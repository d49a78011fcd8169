"""Records requests that RocketMQ's own classes signed, as tests/golden/signatures.json.

`python compat-tests/capture/record_signatures.py` runs Signatures.java with the jars of both lines.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.peers import jars  # noqa: E402 # the repository's root has to be on the path first
from bench.peers.rocketmq import NAME, OLD  # noqa: E402
from bench.peers.tools import find_java  # noqa: E402

PROGRAM = Path(__file__).with_name("Signatures.java")
GOLDEN = ROOT / "tests" / "golden" / "signatures.json"
SECRET = "secret-\u00e4\u20ac-12345678"
COLUMNS = ("request", "encoding", "signature", "frame")


def record() -> None:
    """Write the golden file again."""
    rows = []
    for line in (OLD, NAME):
        command = [str(find_java()), "-cp", f"{jars.fetch(line)}/*", str(PROGRAM)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows += [
            {"client": f"rocketmq-java {jars.version(line)}"}
            | dict(zip(COLUMNS, row.split("\t"), strict=True))
            for row in out.splitlines()
            if row.count("\t") == len(COLUMNS) - 1
        ]
    golden = {"access_key": "alice", "secret": SECRET, "requests": rows}
    GOLDEN.write_text(json.dumps(golden, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    record()
