from pathlib import Path

import pytest
from bench.peers.__main__ import main, parser


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["peers", *words])
    main()


def test_the_status_of_a_peer_that_does_not_run_is_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "kafka", "status", "--dir", str(tmp_path))
    assert ended.value.code == 1
    assert "kafka does not run" in capsys.readouterr().err


def test_stopping_what_does_not_run_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "rocketmq", "stop", "--dir", str(tmp_path))
    assert capsys.readouterr().out == ""


def test_a_tools_own_flags_are_left_to_it() -> None:
    words = ["kafka", "tool", "TopicCommand", "--bootstrap-server", "127.0.0.1:19092", "--list"]
    assert parser().parse_args(words).arguments == words[2:]


def test_a_setting_needs_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["kafka", "start", "--set", "num.partitions"])
    assert "'num.partitions' is not KEY=VALUE" in capsys.readouterr().err
