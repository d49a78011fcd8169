"""The commands, one for each job: flags to the job's options, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rockgate.pipeline.cli import options
from rockgate.pipeline.cli.examples import (
    ARCHIVE_EXAMPLES,
    DEAD_LETTERS_EXAMPLES,
    MIRROR_EXAMPLES,
    REPLAY_EXAMPLES,
    RUN_EXAMPLES,
    STATS_EXAMPLES,
)
from rockgate.pipeline.cli.runner import reports_errors, run_job
from rockgate.pipeline.spark.session import INSTALL_ADVICE

HELP = (
    "Archive, replay, mirror and measure topics with Spark, resend dead letters, or run your own "
    "function."
)
if find_spec("pyspark") is None:
    # Text in brackets would be parsed as markup.
    advice = INSTALL_ADVICE.replace("[", "\\[")
    HELP += f"\n\n[bold]pyspark is not installed, so jobs cannot run. {advice}[/bold]"

app = typer.Typer(
    name="rockgate pipeline",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

STEP_RECORDS = 1_000_000
REPLAY_STEP_RECORDS = 500_000
DEAD_LETTERS_STEP_RECORDS = 100_000
EVERY = "5 seconds"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; also what spark-submit runs."""
    app(args=list(arguments) if arguments is not None else None, prog_name="rockgate pipeline")


@app.command(epilog=ARCHIVE_EXAMPLES)
@reports_errors
def archive(
    into: Annotated[str, typer.Option(metavar="PATH", help="Archive directory or URI.")],
    topic: options.TopicNames = None,
    pattern: options.Pattern = "",
    bootstrap: options.Bootstrap = "",
    kafka_option: options.KafkaOption = None,
    client_config: options.ClientConfig = None,
    start: options.Start = "earliest",
    follow: options.Follow = False,
    every: options.Every = EVERY,
    step: options.StepRecords = STEP_RECORDS,
    allow_data_loss: options.AllowDataLoss = False,
    merge_files: Annotated[
        int,
        typer.Option(
            metavar="COUNT", min=0, help="Merge when there are this many small files; 0: never."
        ),
    ] = 8,
    merge_bytes: Annotated[
        str, typer.Option(metavar="SIZE", help="Do not merge files of this size or larger.")
    ] = "128m",
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Archive topics to Parquet, partitioned by topic and date, exactly once."""
    from rockgate.pipeline.files.compaction import Merging
    from rockgate.pipeline.jobs import archive as job

    size = options.size(merge_bytes, "--merge-bytes")
    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option, client_config),
        topics=options.topics(topic, pattern),
        into=into,
        reading=options.reading(start, step, allow_data_loss),
        pace=options.pace(follow, every),
        merging=Merging(files_min=merge_files, bytes_max=size),
        checkpoint=checkpoint,
    )
    run_job("archive", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command(epilog=REPLAY_EXAMPLES)
@reports_errors
def replay(
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", help="Archive directory or URI.")],
    to: Annotated[
        str, typer.Option(metavar="TOPIC", help="Target topic; {topic} is the archived name.")
    ],
    topic: options.TopicNames = None,
    since: Annotated[
        str,
        typer.Option(metavar="TIME", help="Only records at or after this time (ISO 8601, UTC)."),
    ] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Only records before this time.")] = "",
    where: Annotated[
        str, typer.Option(metavar="SQL", help="SQL condition on the archive's columns.")
    ] = "",
    rate: Annotated[
        float, typer.Option(metavar="COUNT", min=0, help="Maximum records per second; 0: no limit.")
    ] = 0,
    timestamp_header: Annotated[
        str, typer.Option(metavar="NAME", help="Header for the archived timestamp.")
    ] = "",
    delay: Annotated[
        str,
        typer.Option(metavar="TIME", help="Delay each record after it is written."),
    ] = "",
    bootstrap: options.Bootstrap = "",
    kafka_option: options.KafkaOption = None,
    client_config: options.ClientConfig = None,
    step: options.StepRecords = REPLAY_STEP_RECORDS,
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Replay archived records to a topic, with keys, headers and partition order."""
    from rockgate.pipeline.jobs import replay as job
    from rockgate.pipeline.spark.kafka import names_of

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option, client_config),
        archive=archive,
        to=to,
        selection=job.Selection(
            topics=names_of(topic or ()),
            since=options.moment(since, "--since"),
            until=options.moment(until, "--until"),
            where=where,
        ),
        rate=rate,
        timestamp_header=timestamp_header,
        delay_ms=options.duration(delay, "--delay"),
        checkpoint=checkpoint,
        step_records=step,
    )
    run_job("replay", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command(epilog=MIRROR_EXAMPLES)
@reports_errors
def mirror(
    source: Annotated[str, typer.Option("--from", metavar="HOST:PORT", help="Source cluster.")],
    checkpoint: options.Checkpoint,
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="HOST:PORT",
            envvar=options.BOOTSTRAP_VARIABLE,
            help="Target cluster.",
            show_default=options.DEFAULT_BOOTSTRAP,
        ),
    ] = "",
    topic: options.TopicNames = None,
    pattern: options.Pattern = "",
    rename: Annotated[
        str, typer.Option(metavar="NAME", help="Name of topics at the target.")
    ] = "{topic}",
    from_option: options.FromOption = None,
    to_option: options.ToOption = None,
    from_client_config: options.FromClientConfig = None,
    to_client_config: options.ToClientConfig = None,
    start: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where the first run starts: earliest, latest, offsets as JSON, or group:NAME "
            "for that group's committed offsets.",
        ),
    ] = "earliest",
    marks: Annotated[
        bool,
        typer.Option("--marks/--no-marks", help="Add the source timestamp and offset as headers."),
    ] = True,
    follow: options.Follow = False,
    every: options.Every = EVERY,
    step: options.StepRecords = STEP_RECORDS,
    allow_data_loss: options.AllowDataLoss = False,
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Mirror topics to another Kafka cluster, with partitions, keys and headers."""
    from rockgate.pipeline.jobs import mirror as job

    chosen = job.Options(
        source=options.cluster(
            source, from_option, from_client_config, flag="--from-option", environment={}
        ),
        target=options.cluster(target, to_option, to_client_config, flag="--to-option"),
        topics=options.topics(topic, pattern),
        checkpoint=checkpoint,
        to=rename,
        reading=options.reading(start, step, allow_data_loss),
        pace=options.pace(follow, every),
        has_marks=marks,
    )
    run_job("mirror", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command(epilog=STATS_EXAMPLES)
@reports_errors
def stats(
    topic: options.TopicNames = None,
    pattern: options.Pattern = "",
    window: Annotated[str, typer.Option(metavar="TIME", help="Window length.")] = "1 minute",
    late: Annotated[
        str, typer.Option(metavar="TIME", help="With --follow: accept records up to this late.")
    ] = "1 minute",
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Report lag of this group; repeatable.", show_default="all groups"
        ),
    ] = None,
    latency_header: Annotated[
        str, typer.Option(metavar="NAME", help="Header with the send time, in ms.")
    ] = "",
    into: Annotated[
        str, typer.Option(metavar="PATH", help="Write Parquet to this directory.")
    ] = "",
    to_topic: Annotated[str, typer.Option(metavar="NAME", help="Write JSON to this topic.")] = "",
    report: Annotated[
        str, typer.Option(metavar="FILE", help="Write an HTML report with plots.")
    ] = "",
    bootstrap: options.Bootstrap = "",
    kafka_option: options.KafkaOption = None,
    client_config: options.ClientConfig = None,
    start: options.Start = "earliest",
    follow: options.Follow = False,
    every: options.Every = EVERY,
    step: options.StepRecords = STEP_RECORDS,
    allow_data_loss: options.AllowDataLoss = False,
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Report rates, sizes and latencies per topic and window, and group lag."""
    from rockgate.pipeline.jobs import stats as job

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option, client_config),
        topics=options.topics(topic, pattern),
        window=window,
        late=late,
        groups=tuple(group or ()),
        latency_header=latency_header,
        into=into,
        to_topic=to_topic,
        report=report,
        reading=options.reading(start, step, allow_data_loss),
        pace=options.pace(follow, every),
        checkpoint=checkpoint,
    )
    run_job("stats", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command("dead-letters", epilog=DEAD_LETTERS_EXAMPLES)
@reports_errors
def dead_letters(
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this group; repeatable.", show_default="all groups"
        ),
    ] = None,
    where: Annotated[
        str, typer.Option(metavar="SQL", help="SQL condition on the dead letters' columns.")
    ] = "",
    into: Annotated[
        str, typer.Option(metavar="PATH", help="Write Parquet to this directory.")
    ] = "",
    resend: Annotated[
        bool, typer.Option("--resend", help="Resend to the original topics.")
    ] = False,
    delay: Annotated[
        str, typer.Option(metavar="TIME", help="With --resend: delay delivery, such as 10m.")
    ] = "",
    marks: Annotated[
        bool,
        typer.Option(
            "--marks/--no-marks", help="With --resend: add the dead letter's id as a header."
        ),
    ] = True,
    bootstrap: options.Bootstrap = "",
    kafka_option: options.KafkaOption = None,
    client_config: options.ClientConfig = None,
    step: options.StepRecords = DEAD_LETTERS_STEP_RECORDS,
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Summarize, export or resend the dead letters of RocketMQ consumers."""
    from rockgate.pipeline.jobs import deadletters as job

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option, client_config),
        groups=tuple(group or ()),
        where=where,
        into=into,
        is_json=json,
        is_resending=resend,
        delay_ms=options.duration(delay, "--delay"),
        has_marks=marks,
        step_records=step,
        checkpoint=checkpoint,
    )
    run_job("dead-letters", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command(epilog=RUN_EXAMPLES)
@reports_errors
def run(
    function: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION")],
    into: Annotated[str, typer.Option("--out", metavar="TOPIC", help="Output topic.")],
    checkpoint: options.Checkpoint,
    inputs: Annotated[
        list[str],
        typer.Option("--in", metavar="TOPIC", help="Input topic; repeatable, in order."),
    ],
    bootstrap: options.Bootstrap = "",
    kafka_option: options.KafkaOption = None,
    client_config: options.ClientConfig = None,
    start: options.Start = "earliest",
    follow: options.Follow = False,
    every: options.Every = EVERY,
    step: options.StepRecords = STEP_RECORDS,
    allow_data_loss: options.AllowDataLoss = False,
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run your own function between topics: DataFrames in, one DataFrame out."""
    from rockgate.pipeline.jobs import run as job

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option, client_config),
        function=function,
        inputs=tuple(inputs),
        output=into,
        checkpoint=checkpoint,
        reading=options.reading(start, step, allow_data_loss),
        pace=options.pace(follow, every),
    )
    run_job("run", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command("submit-path")
def submit_path() -> None:
    """Print the path of the spark-submit script. Accepts the same arguments."""
    typer.echo(str(Path(__file__).parents[1] / "submit.py"))
