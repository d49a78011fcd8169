"""The benchmark beside Apache's own Python client: when it is left out, and which bars it draws."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.measure.results import LeftOut, Report
from bench.measure.run import Sampling
from bench.peers.rockgate import ROOT
from bench.sdk import official, push


def test_without_the_client_it_is_left_out_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(LeftOut, match=r"not installed here.*BENCH_ROCKETMQ_PYTHON=/path"):
        official.official(tmp_path, {})
    with pytest.raises(LeftOut, match="does not run"):
        official.official(tmp_path, {official.VARIABLE: str(tmp_path / "python")})


def test_a_benchmark_that_is_left_out_prints_its_reason_and_fails_nothing() -> None:
    command = [sys.executable, "-m", "bench", "official"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("left out  official: rocketmq-python-client is not installed")


def test_bars_compare_with_the_faster_of_its_consumers() -> None:
    shown = Sampling(Report(name="official", question="?", peers={}))
    for case in map(push.case_of, official.SIZES):
        shown.note(case, push.PYTHON, 600.0)
        shown.note(case, official.PUSH, 100.0)
        shown.note(case, official.SIMPLE, 300.0)
    shown.note("p99 [us]", push.PYTHON, 500.0)
    shown.note("p99 [us]", official.PUSH, 1000.0)
    assert [bar.measured for bar in official.bars(shown, "p99 [us]")] == [2.0, 2.0, 0.5]
