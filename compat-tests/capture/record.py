"""Records golden bytes: real clients, a real broker, and the proxy between them.

    record.py capture --broker HOST:PORT --listen HOST:PORT --out FILE    run the clients
    record.py write FILE    write the useful part: tests/golden/kafka/<api>/v<N>-<client>.json

`capture` needs a broker that advertises the proxy's address (README.md). `write` decodes every
frame with our declarations and stores the values beside the bytes, for people and tests.
"""

import argparse
import asyncio
import importlib.metadata
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proxy import CaptureProxy, Exchange, Recording
from scenario_aiokafka import aiokafka
from scenario_confluent_kafka import confluent_kafka, confluent_kafka_sasl
from scenario_kafka_java import kafka_java
from scenario_kafka_python import kafka_python, kafka_python_sasl
from tests.golden.values import plain

from rockgate.protocol.kafka.api import APIS, ApiKey
from rockgate.protocol.kafka.connection import decode_request_header, decode_response_header
from rockgate.protocol.kafka.schema import decode, encode

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "kafka"
FRAME_SIZE_MAX = 1500
KAFKA_PYTHON_LEVELS = (None, (3, 9), (2, 8), (2, 5), (2, 3), (2, 1), (1, 1), (1, 0), (0, 11))

Run = Callable[[], None]


def capture(arguments: argparse.Namespace) -> None:
    """Run every client through the proxy, one after the other, and save the recording."""
    recording = asyncio.run(_run_all(arguments))
    rows = [
        {
            "client": call.client,
            "api_key": call.api_key,
            "version": call.version,
            "request": exchange.request.hex(),
            "response": None if exchange.response is None else exchange.response.hex(),
        }
        for call, exchanges in recording.exchanges.items()
        for exchange in exchanges
        if max(len(exchange.request), len(exchange.response or b"")) <= 100_000
    ]
    Path(arguments.out).write_text(json.dumps({"broker": arguments.broker_name, "rows": rows}))
    print(f"{len(rows)} exchanges of {len(recording.exchanges)} calls")


async def _run_all(arguments: argparse.Namespace) -> Recording:
    recording = Recording()
    proxy = CaptureProxy(recording, _address(arguments.broker))
    await proxy.start(*_address(arguments.listen))
    sasl_proxy = None
    if arguments.sasl_broker:
        sasl_proxy = CaptureProxy(recording, _address(arguments.sasl_broker))
        await sasl_proxy.start(*_address(arguments.sasl_listen))
    for name, run in _scenarios(arguments):
        recording.client = name
        print(name)
        await asyncio.to_thread(run)
    await proxy.stop()
    if sasl_proxy is not None:
        await sasl_proxy.stop()
    return recording


def _scenarios(arguments: argparse.Namespace) -> list[tuple[str, Run]]:
    address, sasl = arguments.listen, arguments.sasl_listen
    found: list[tuple[str, Run]] = [
        ("kafka-python", lambda level=level: kafka_python(address, print, level))  # type: ignore[misc]
        for level in KAFKA_PYTHON_LEVELS
    ]
    found.append(("aiokafka", lambda: aiokafka(address, print)))
    found.append(("confluent-kafka", lambda: confluent_kafka(address, print)))
    if arguments.tool:
        tool = shlex.split(arguments.tool)
        found.append(("kafka-java", lambda: kafka_java(address, print, tool)))
    if arguments.only:
        return [each for each in found if each[0] == arguments.only]
    if arguments.sasl_broker:
        found.append(("kafka-python", lambda: kafka_python_sasl(sasl, print)))
        found.append(("confluent-kafka", lambda: confluent_kafka_sasl(sasl, print)))
    return found


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


# Writing golden files


def write(arguments: argparse.Namespace) -> None:
    """Select, check and write; a frame that contains this machine's name is never written."""
    captured = json.loads(Path(arguments.capture).read_text())
    calls: dict[tuple[int, int, str], list[Exchange]] = {}
    for row in captured["rows"]:
        if row["api_key"] not in APIS:
            # The broker also uses the proxy itself, with APIs that no client uses.
            continue
        response = row["response"]
        exchange = Exchange(
            bytes.fromhex(row["request"]), None if response is None else bytes.fromhex(response)
        )
        calls.setdefault((row["api_key"], row["version"], row["client"]), []).append(exchange)
    count = size = 0
    for (key, version, client), exchanges in sorted(calls.items()):
        api = APIS[ApiKey(key)]
        chosen = _choose(key, exchanges)
        if not chosen:
            print(f"left out: api {key} v{version} of {client}, {len(exchanges)} exchanges")
            continue
        path = GOLDEN / _folder(api.name) / f"v{version}-{client}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {
                "client": client,
                "client_version": _version(client, captured["broker"]),
                "broker": captured["broker"],
                "api": api.name,
                "api_key": key,
                "version": version,
                "frames": [
                    frame for exchange in chosen for frame in _frames(api, version, exchange)
                ],
            },
            indent=1,
        )
        path.write_text(text + "\n")
        count, size = count + 1, size + len(text)
    print(f"{count} files, {size // 1024} KiB")


def _version(client: str, broker: str) -> str:
    """The version of a client; that of Kafka's tools is the broker's."""
    return broker.split()[-1] if client == "kafka-java" else importlib.metadata.version(client)


def _folder(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _choose(key: int, exchanges: list[Exchange]) -> list[Exchange]:
    """The first exchange of a call, and the most informative one within the size limit.

    A request without a response was rejected by the broker, unless it is a Produce with acks=0.
    """
    fit = [
        exchange
        for exchange in exchanges
        if (exchange.response is not None or key == ApiKey.PRODUCE)
        and len(exchange.request) <= FRAME_SIZE_MAX
        and len(exchange.response or b"") <= FRAME_SIZE_MAX
        and not _names_this_machine(exchange)
    ]
    if not fit:
        return []
    richest = max(fit, key=lambda exchange: len(exchange.request) + len(exchange.response or b""))
    return [fit[0]] if richest is fit[0] else [fit[0], richest]


def _names_this_machine(exchange: Exchange) -> bool:
    both = exchange.request + (exchange.response or b"")
    return re.search(rb"/(tmp|home|root|work|var|Users)\b", both) is not None


def _frames(api: Any, version: int, exchange: Exchange) -> list[dict[str, Any]]:
    header, start = decode_request_header(exchange.request)
    frames = [
        {
            "direction": "request",
            "correlation_id": header.correlation_id,
            "client_id": header.client_id,
            "start": start,
            "hex": exchange.request.hex(),
            "value": plain(decode(api.request, version, exchange.request[start:])),
        }
    ]
    if exchange.response is not None:
        correlation_id, start = decode_response_header(api.key, version, exchange.response)
        frames.append(
            {
                "direction": "response",
                "correlation_id": correlation_id,
                "start": start,
                "hex": exchange.response.hex(),
                "value": plain(decode(api.response, version, exchange.response[start:])),
            }
        )
    for frame, message in zip(frames, (api.request, api.response), strict=False):
        _check(frame, message, version)
    return frames


def _check(frame: dict[str, Any], message: type[Any], version: int) -> None:
    """Record the bytes that a client leaves after its message; a response must not leave any."""
    start = frame.pop("start")
    body = bytes.fromhex(frame["hex"])[start:]
    written = encode(decode(message, version, body), version)
    if body != written:
        assert frame["direction"] == "request" and body.startswith(written), frame
        frame["left_over"] = body[len(written) :].hex()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    capturing = commands.add_parser("capture")
    capturing.add_argument("--broker", default="127.0.0.1:19092")
    capturing.add_argument("--broker-name", default="Apache Kafka 4.3.1")
    capturing.add_argument("--listen", default="127.0.0.1:29092")
    capturing.add_argument("--sasl-broker")
    capturing.add_argument("--sasl-listen", default="127.0.0.1:29094")
    capturing.add_argument("--tool", help="a command that runs a class of Kafka's tools")
    capturing.add_argument("--only", help="this client alone")
    capturing.add_argument("--out", required=True)
    capturing.set_defaults(run=capture)
    writing = commands.add_parser("write")
    writing.add_argument("capture")
    writing.set_defaults(run=write)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
