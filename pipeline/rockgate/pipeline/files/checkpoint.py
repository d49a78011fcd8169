"""What a checkpoint was made for: a rerun with other options is refused before it mixes things up.

Spark's checkpoint records a query's progress, not what the query was. Next to it is `job.json` with
the options that decide what the job reads and writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rockgate.pipeline.errors import WrongCheckpoint
from rockgate.pipeline.files.interface import Files

NAME = "job.json"


def claim(checkpoint: Files, identity: Mapping[str, str]) -> None:
    """Record the job of this checkpoint, or compare it with the recorded one."""
    if not checkpoint.exists(NAME):
        if checkpoint.folders("offsets") or checkpoint.exists("offsets"):
            raise WrongCheckpoint(
                f"Checkpoint {checkpoint.uri()} belongs to another job. Use another one."
            )
        checkpoint.write_text(NAME, json.dumps(identity, indent=2) + "\n")
        return
    stored = json.loads(checkpoint.read_text(NAME))
    differing = sorted(
        name for name in {*stored, *identity} if stored.get(name) != identity.get(name)
    )
    if differing:
        then = ", ".join(f"{name}={stored.get(name, '(none)')}" for name in differing)
        now = ", ".join(f"{name}={identity.get(name, '(none)')}" for name in differing)
        raise WrongCheckpoint(
            f"Checkpoint {checkpoint.uri()} was created with {then}, but this run has {now}. "
            "Use another --checkpoint, or the options it was created with."
        )


def unfinished_batch(checkpoint: Files) -> int | None:
    """The batch that a run began and did not finish, which the next run does first."""
    begun = _numbers(checkpoint, "offsets")
    done = _numbers(checkpoint, "commits")
    last = max(begun, default=-1)
    return last if last > max(done, default=-1) else None


def _numbers(checkpoint: Files, folder: str) -> list[int]:
    names = (file.path.rpartition("/")[2] for file in checkpoint.below(folder))
    return [int(name) for name in names if name.isdigit()]
