"""Runs `rockgate` under a profiler: `python -m bench.measure.profiled OUT serve …`.

Only the event loop's thread is profiled, from the start of the server's coroutine to its end; the
statistics are written to OUT for `pstats`.
"""

import cProfile
import sys
from collections.abc import Collection

from rockgate.cli.__main__ import main
from rockgate.gateway.compose import app
from rockgate.gateway.compose.config import Config


def profile(out: str) -> None:
    """Have the server's coroutine run under a profiler that writes to `out`."""
    profiler = cProfile.Profile()
    serve = app._serve

    async def profiled(config: Config, given: Collection[str]) -> None:
        profiler.enable()
        try:
            await serve(config, given)
        finally:
            profiler.disable()
            profiler.dump_stats(out)

    app._serve = profiled


if __name__ == "__main__":
    profile(sys.argv.pop(1))
    main()
