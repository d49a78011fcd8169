"""The options of `rockgate console`, as far as they are refused."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rockgate.console.command import app

SASL = "security.protocol=SASL_PLAINTEXT\nsasl.username=ann\n"


@pytest.mark.parametrize(
    ("config", "arguments", "problem"),
    [
        ("", ("--listen", "here"), "Expected HOST:PORT, got 'here'."),
        ("", ("-b", "a:b:c"), "Expected HOST:PORT, got 'a:b:c'."),
        ("", ("--timeout", "soon"), "Expected a duration such as 10s"),
        ("", ("--login",), "--login needs security.protocol=SASL_PLAINTEXT or SASL_SSL"),
        (SASL, ("--no-login",), "--no-login needs the password of the user"),
        ("sasl.what=1\n", (), "Property sasl.what"),
        (SASL, ("--listen", "0.0.0.0:0"), "Passwords would reach 0.0.0.0:0 in clear"),
        ("", ("--key", "k.pem"), "--certificate and --key are given together."),
        ("", ("--schema-registry", "registry:8081"), "A schema registry has an http or https"),
    ],
)
def test_options_that_make_no_sense_are_status_2(
    tmp_path: Path, config: str, arguments: tuple[str, ...], problem: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(config)
    result = CliRunner().invoke(app, ["--client-config", str(file), *arguments])
    assert result.exit_code == 2, result.output
    assert problem in result.output
