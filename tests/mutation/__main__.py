"""`make rows-mutate ROW=LP-3`: break the code behind rows, and report which tests noticed."""

import sys
import tempfile
from pathlib import Path

from tests.mutation.breaking import Scratch, Verdict, load


def main(rows: list[str]) -> int:
    """Try the mutations of these rows, or all; the exit status says whether all were red."""
    chosen = [each for each in load() if not rows or each.row in rows]
    if missing := set(rows) - {each.row for each in chosen}:
        sys.stderr.write(f"no mutation of {', '.join(sorted(missing))} in mutations.toml\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="rows-mutate-") as folder:
        scratch = Scratch(Path(folder))
        if not scratch.passes(each.row for each in chosen):
            sys.stderr.write("tests of these rows fail before anything is broken\n")
            return 2
        verdicts = []
        for mutation in chosen:
            verdicts.append(scratch.judge(mutation))
            sys.stdout.write(f"{mutation.name}: {verdicts[-1].value}\n")
            sys.stdout.flush()
    red = verdicts.count(Verdict.RED)
    sys.stdout.write(f"{red} of {len(verdicts)} red\n")
    return 0 if red == len(verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
