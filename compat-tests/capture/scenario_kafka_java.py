"""The runs of Apache Kafka's own tools, which use its Java client, for the recording."""

import shlex
import subprocess

from steps import Report, step

TOPIC, GROUP = "golden-java", "golden-group-java"
CONSUME = f"--topic {TOPIC} --max-messages 3 --timeout-ms 15000"
SHARE = f"{GROUP}-share"

# A class and its arguments; the bootstrap address is inserted after the class.
STEPS = (
    f"TopicCommand --create --topic {TOPIC} --partitions 2",
    f"TopicCommand --describe --topic {TOPIC}",
    f"ConsoleProducer --topic {TOPIC}",
    f"ProducerPerformance --topic {TOPIC} --num-records 10 --throughput -1 --record-size 10"
    " --transactional-id tx-java",
    f"consumer.ConsoleConsumer {CONSUME} --group {GROUP} --from-beginning",
    f"consumer.ConsoleConsumer {CONSUME} --group {GROUP}-848 --from-beginning"
    " --command-property group.protocol=consumer",
    f"ConfigCommand --alter --entity-type groups --entity-name {SHARE}"
    " --add-config share.auto.offset.reset=earliest",
    f"consumer.ConsoleShareConsumer {CONSUME} --group {SHARE}",
    f"consumer.group.ShareGroupCommand --describe --group {SHARE}",
    f"consumer.group.ShareGroupCommand --describe --members --group {SHARE}",
    f"consumer.group.ShareGroupCommand --reset-offsets --to-earliest --group {SHARE}"
    f" --topic {TOPIC} --execute",
    f"consumer.group.ShareGroupCommand --delete-offsets --group {SHARE} --topic {TOPIC}",
    f"consumer.group.ConsumerGroupCommand --describe --group {GROUP}",
    "consumer.group.ConsumerGroupCommand --list --state",
    f"GetOffsetShell --topic {TOPIC}",
    "ConfigCommand --alter --add-config producer_byte_rate=1000000"
    " --entity-type clients --entity-name golden",
    "ConfigCommand --describe --entity-type clients",
    "FeatureCommand describe",
    "TransactionsCommand list",
    f"TransactionsCommand describe-producers --topic {TOPIC} --partition 0",
    f"TopicCommand --delete --topic {TOPIC}",
)
TYPED = "one\ntwo\nthree\n"


def kafka_java(address: str, report: Report, tool: list[str]) -> None:
    """`tool` is a command that runs a tool's class with the following arguments."""
    for line in STEPS:
        name, *arguments = shlex.split(line)
        package = "kafka.admin" if name == "ConfigCommand" else "org.apache.kafka.tools"
        with step(report, name):
            done = subprocess.run(
                [*tool, f"{package}.{name}", "--bootstrap-server", address, *arguments],
                input=TYPED,
                text=True,
                capture_output=True,
                timeout=120,
            )
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines() or ["failed"]
                report(f"  {line}: {said[0][:150]}")
