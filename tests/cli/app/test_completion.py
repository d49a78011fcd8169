import subprocess
import sys
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.gateway.server import environment


def completed(words: str, server: str) -> set[str]:
    """What bash is offered for the last of the words."""
    variables = {
        "_ROCKGATE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "ROCKGATE_BOOTSTRAP_SERVER": server,
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("rockgate")],
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


def test_a_shell_completes_topics_and_groups(terminal: Terminal, name: str) -> None:
    server = terminal.variables["ROCKGATE_BOOTSTRAP_SERVER"]
    terminal.run("topics", "create", f"{name}-a", f"{name}-b", f"x-{name}")
    assert completed(f"rockgate topics describe {name}-", server) == {f"{name}-a", f"{name}-b"}
    terminal.run(
        *("groups", "reset-offsets", f"g-{name}", "--topic", f"{name}-a", "--to-latest"),
        "--execute",
    )
    assert completed(f"rockgate consume t --group g-{name}", server) == {f"g-{name}"}
    # The server that the words name is the one that is asked.
    words = f"rockgate topics delete --bootstrap-server {server} x-{name}"
    assert completed(words, "127.0.0.1:1") == {f"x-{name}"}


def test_without_a_server_nothing_is_completed_and_nothing_is_said() -> None:
    assert completed("rockgate topics describe t", "127.0.0.1:1") == set()
