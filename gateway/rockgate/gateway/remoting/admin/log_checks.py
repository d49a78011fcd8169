"""A check of the server's own data directory, in a process beside it: started, followed, stopped.

The process (`rockgate.store.check`) reads files and changes none. One check runs at a time; what
the last one found is remembered until the next one or a restart.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from rockgate.protocol.remoting.bodies.admin import LogCheck, LogCheckState, LogReport
from rockgate.store.api.clock import Clock

LINE_BYTES_MAX: Final = 1 << 20
STDERR_BYTES: Final = 2_000
_log = logging.getLogger(__name__)


class _Line(msgspec.Struct):
    read: int = 0
    total: int = 0
    report: LogReport | None = None


_decode: Final = msgspec.json.Decoder(_Line).decode


class LogChecks:
    """The check that runs now, or ran last."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._now = LogCheck(state=LogCheckState.NEVER)
        self._tasks: set[asyncio.Task[None]] = set()

    def status(self) -> LogCheck:
        """How far it is, or what it found."""
        return self._now

    def start(self) -> LogCheck:
        """Start a check, unless one runs."""
        if self._now.state is not LogCheckState.RUNNING:
            self._now = LogCheck(state=LogCheckState.RUNNING, started_ms=self._clock.now_ms())
            task = asyncio.create_task(self._run(self._now))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return self._now

    def stop(self) -> LogCheck:
        """Stop the check that runs, if any."""
        if self._now.state is LogCheckState.RUNNING:
            self._end(self._now, LogCheckState.STOPPED)
            for task in self._tasks:
                task.cancel()
        return self._now

    async def close(self) -> None:
        """Stop it, and wait for the end of its process."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, check: LogCheck) -> None:
        process: asyncio.subprocess.Process | None = None
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "rockgate.store.check", str(self._folder)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
            )
            await self._follow(check, process)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            self._fail(check, str(error))
        finally:
            if process is not None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def _follow(self, check: LogCheck, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None and process.stderr is not None
        async for line in process.stdout:
            found = _decode(line)
            if found.report is not None:
                check.report = found.report
                self._end(check, LogCheckState.DONE)
                _log.info("checked the log damage=%d", found.report.damage_count)
                return
            check.read_bytes, check.total_bytes = found.read, found.total
        said = (await process.stderr.read(LINE_BYTES_MAX))[-STDERR_BYTES:]
        lines = said.decode("utf-8", "replace").strip().splitlines()
        self._fail(check, lines[-1] if lines else "it ended without a report")

    def _fail(self, check: LogCheck, problem: str) -> None:
        check.problem = f"The check ended early: {problem}"
        self._end(check, LogCheckState.FAILED)
        _log.warning("check of the log ended early reason=%s", problem)

    def _end(self, check: LogCheck, state: LogCheckState) -> None:
        check.state, check.ended_ms = state, self._clock.now_ms()
