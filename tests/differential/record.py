"""Records the responses of a reference server: `python -m tests.differential.record [KIND …]`.

`make test` plays recorded sequences to us, without a peer. Record again when a kind gets new steps,
or for a new version of the reference; the files contain its name and version.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from tests.differential.kinds import KINDS, played
from tests.differential.peers import Peer, running

FOLDER = Path(__file__).with_name("recorded")
SEQUENCES = 40
SEED = 20261117


def main(names: list[str]) -> None:
    """Record some kinds, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or KINDS:
        with running(KINDS[name].listener) as peer:
            record(name, peer)


def record(name: str, peer: Peer) -> None:
    """Record one kind."""
    kind = KINDS[name]
    random = Random(f"{SEED} {name}")
    lines = []
    for number in range(SEQUENCES):
        sequence = kind.sequence(random, kind.length)
        answers = played(kind, peer.address, sequence)
        pairs = [list(pair) for pair in zip(sequence, answers, strict=True)]
        lines.append(json.dumps(pairs))
        sys.stderr.write(f"\r{name}: {number + 1} of {SEQUENCES}")
    sys.stderr.write("\n")
    head = json.dumps({"answered by": peer.name, "seed": SEED})
    (FOLDER / f"{name}.jsonl").write_text("\n".join([head, *lines]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
