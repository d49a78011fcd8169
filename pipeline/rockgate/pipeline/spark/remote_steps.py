"""A stream's steps made in this process while its driver runs at a Connect server.

Under Connect the function of `foreachBatch` runs beside the server, in a Python that has nothing of
ours. What is sent there (shipped_code.py) offers each batch as a view and waits; this end finds the
offer in the session's settings, runs the step with that view, and answers. So a step, its failure,
and Ctrl-C between two steps are the same as with a local driver.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rockgate.pipeline.spark import shipped_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

ALIVE_SECONDS = 1.0
STEP_END_SECONDS_MAX = 10.0


class Steering:
    """Takes what the server offers, one batch at a time, and hands it to the step."""

    def __init__(self, spark: SparkSession, step: Callable[[DataFrame, int], None]) -> None:
        self._spark = spark
        self._step = step
        self._name = f"rockgate_{uuid4().hex}"
        self._taken = -1
        self._thread: threading.Thread | None = None
        self._signs = 0
        self._signed = 0.0

    def function(self) -> Callable[[Any, int], None]:
        """What `foreachBatch` is given."""
        self._sign()
        offering: Callable[[str], Callable[[Any, int], None]] = shipped_code.whole(
            shipped_code.offering
        )
        return offering(self._name)

    def turn(self) -> None:
        """Send a heartbeat, and start the offered step, if there is one."""
        self._sign()
        if self._thread is not None and self._thread.is_alive():
            return
        number = int(self._spark.conf.get(f"{self._name}.offered", "-1") or -1)
        if number > self._taken:
            self._taken = number
            self._thread = threading.Thread(target=self._make, args=(number,), daemon=True)
            self._thread.start()

    def end(self, *, is_urgent: bool) -> None:
        """Refuse further steps; urgently, also interrupt the one that runs."""
        self._answer("stop")
        if is_urgent:
            self._spark.interruptAll()
        if self._thread is not None:
            self._thread.join(STEP_END_SECONDS_MAX)

    def _make(self, number: int) -> None:
        try:
            self._step(self._spark.table(f"{self._name}_{number}"), number)
        except BaseException as error:  # noqa: BLE001 - the step itself has stored it
            # If the server is gone, the loop that calls `turn` notices it, too.
            with suppress(Exception):
                self._answer(f"{number} {type(error).__name__}")
        else:
            self._answer(f"{number} done")

    def _answer(self, text: str) -> None:
        self._spark.conf.set(f"{self._name}.answer", text)

    def _sign(self) -> None:
        now = time.monotonic()
        if now - self._signed >= ALIVE_SECONDS:
            self._signs, self._signed = self._signs + 1, now
            self._spark.conf.set(f"{self._name}.alive", str(self._signs))
