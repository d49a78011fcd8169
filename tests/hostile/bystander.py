"""A well-behaved client beside an attacker: if it is ever disturbed, the test fails."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

from tests.waiting import wait_until

DEADLINE_SECONDS = 15.0
"""Maximum duration of a bystander's round. It takes milliseconds; the machine may be slow."""


class Bystander(ABC):
    """Runs one round after the other until it is stopped."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.rounds = 0
        self.seconds_worst = 0.0
        self.error: BaseException | None = None
        self._thread.start()

    @abstractmethod
    def do_round(self) -> None:
        """Run a round; an error, or a response that is too late, is a disturbance."""

    @abstractmethod
    def close(self) -> None:
        """Close its connections."""

    def go_round(self) -> None:
        """Wait until it has started and finished another round."""
        more = self.rounds + 2
        wait_until(lambda: self.rounds >= more or self.error, "the bystander goes on")

    def stop(self) -> None:
        """Stop it, and fail if it was disturbed."""
        self._is_over.set()
        self._thread.join()
        self.close()
        if self.error is not None:
            raise AssertionError("the bystander was disturbed") from self.error
        assert self.seconds_worst < DEADLINE_SECONDS, f"a round took {self.seconds_worst:.1f} s"

    def _run(self) -> None:
        try:
            while not self._is_over.wait(0.005):
                started = time.monotonic()
                self.do_round()
                self.seconds_worst = max(self.seconds_worst, time.monotonic() - started)
                self.rounds += 1
        except (AssertionError, OSError, ValueError) as error:
            self.error = error
