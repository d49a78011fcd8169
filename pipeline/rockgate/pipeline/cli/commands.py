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
from rockgate.pipeline.cli.options import DEFAULT_BOOTSTRAP
from rockgate.pipeline.cli.running import run_job, told
from rockgate.pipeline.spark.session import INSTALL_ADVICE

HELP = (
    "Move data with Spark: archive, replay, mirror, measure, look after dead letters, or run a "
    "function of your own."
)
if find_spec("pyspark") is None:
    # What stands in brackets would be taken for markup.
    advice = INSTALL_ADVICE.replace("[", "\\[")
    HELP += f"\n\n[bold]pyspark is not installed, so no job can run; {advice}[/bold]"

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
@told
def archive(
    into: Annotated[str, typer.Option(metavar="PATH", help="The archive's folder, or its URI.")],
    topic: options.TopicNames = None,
    pattern: options.Pattern = "",
    bootstrap: options.Bootstrap = DEFAULT_BOOTSTRAP,
    kafka_option: options.KafkaOption = None,
    start: options.Start = "earliest",
    follow: options.Follow = False,
    every: options.Every = EVERY,
    step: options.StepRecords = STEP_RECORDS,
    allow_data_loss: options.AllowDataLoss = False,
    merge_files: Annotated[
        int, typer.Option(metavar="COUNT", min=0, help="So many small files are merged; 0: never.")
    ] = 8,
    merge_bytes: Annotated[
        str, typer.Option(metavar="SIZE", help="A file of this size is not merged any more.")
    ] = "128m",
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Topics to Parquet, partitioned by topic and date; every record exactly once."""
    from rockgate.pipeline.files.compaction import Merging
    from rockgate.pipeline.jobs import archive as job

    size = options.size(merge_bytes, "--merge-bytes")
    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option),
        topics=options.topics(topic, pattern),
        into=into,
        reading=options.reading(start, step, allow_data_loss),
        pace=options.pace(follow, every),
        merging=Merging(files_min=merge_files, bytes_max=size),
        checkpoint=checkpoint,
    )
    run_job("archive", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command(epilog=REPLAY_EXAMPLES)
@told
def replay(
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", help="What `archive` wrote.")],
    to: Annotated[
        str, typer.Option(metavar="TOPIC", help="Where to; {topic} is the archived one's name.")
    ],
    topic: options.TopicNames = None,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Records of this time and later (ISO 8601, UTC).")
    ] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Records before this time.")] = "",
    where: Annotated[
        str, typer.Option(metavar="SQL", help="A condition over the archive's columns.")
    ] = "",
    rate: Annotated[
        float, typer.Option(metavar="COUNT", min=0, help="Records a second at most; 0: no limit.")
    ] = 0,
    timestamp_header: Annotated[
        str, typer.Option(metavar="NAME", help="Put the archived time into this header.")
    ] = "",
    delay: Annotated[
        str,
        typer.Option(metavar="TIME", help="Let each record appear so long after it is written."),
    ] = "",
    bootstrap: options.Bootstrap = DEFAULT_BOOTSTRAP,
    kafka_option: options.KafkaOption = None,
    step: options.StepRecords = REPLAY_STEP_RECORDS,
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Archived records back to a topic, with keys, headers, and their order in a partition."""
    from rockgate.pipeline.jobs import replay as job
    from rockgate.pipeline.spark.kafka import names_of

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option),
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
@told
def mirror(
    source: Annotated[
        str, typer.Option("--from", metavar="HOST:PORT", help="The cluster that is read.")
    ],
    checkpoint: options.Checkpoint,
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="HOST:PORT",
            envvar=options.BOOTSTRAP_VARIABLE,
            help="The cluster that is written.",
        ),
    ] = DEFAULT_BOOTSTRAP,
    topic: options.TopicNames = None,
    pattern: options.Pattern = "",
    rename: Annotated[
        str, typer.Option(metavar="NAME", help="What topics are called at the target.")
    ] = "{topic}",
    from_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A client option for --from; repeatable."),
    ] = None,
    to_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A client option for --to; repeatable."),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where the first run begins: earliest, latest, offsets as JSON, or group:NAME "
            "for what that group has committed.",
        ),
    ] = "earliest",
    marks: Annotated[
        bool,
        typer.Option("--marks/--no-marks", help="Keep time and offset of a record in headers."),
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
    """Topics of any Kafka cluster to another, with partitions, keys and headers."""
    from rockgate.pipeline.jobs import mirror as job
    from rockgate.pipeline.spark.kafka import Cluster

    chosen = job.Options(
        source=Cluster(bootstrap=source, options=options.pairs(from_option, "--from-option")),
        target=Cluster(bootstrap=target, options=options.pairs(to_option, "--to-option")),
        topics=options.topics(topic, pattern),
        checkpoint=checkpoint,
        to=rename,
        reading=options.reading(start, step, allow_data_loss),
        pace=options.pace(follow, every),
        has_marks=marks,
    )
    run_job("mirror", job.run, chosen, master=master, conf=conf, json=json, quiet=quiet)


@app.command(epilog=STATS_EXAMPLES)
@told
def stats(
    topic: options.TopicNames = None,
    pattern: options.Pattern = "",
    window: Annotated[str, typer.Option(metavar="TIME", help="How long a window is.")] = "1 minute",
    late: Annotated[
        str, typer.Option(metavar="TIME", help="With --follow: how late a record may come.")
    ] = "1 minute",
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Whose lag; repeatable.", show_default="all groups"),
    ] = None,
    latency_header: Annotated[
        str, typer.Option(metavar="NAME", help="The header with the time a record was sent, in ms.")
    ] = "",
    into: Annotated[str, typer.Option(metavar="PATH", help="Parquet into this folder.")] = "",
    to_topic: Annotated[str, typer.Option(metavar="NAME", help="JSON into this topic.")] = "",
    report: Annotated[str, typer.Option(metavar="FILE", help="A page of HTML, with plots.")] = "",
    bootstrap: options.Bootstrap = DEFAULT_BOOTSTRAP,
    kafka_option: options.KafkaOption = None,
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
    """Rates, sizes and times per topic and window, and how far groups are behind."""
    from rockgate.pipeline.jobs import stats as job

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option),
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
@told
def dead_letters(
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Whose; repeatable.", show_default="all groups"),
    ] = None,
    where: Annotated[
        str, typer.Option(metavar="SQL", help="A condition over the letters' columns.")
    ] = "",
    into: Annotated[str, typer.Option(metavar="PATH", help="Parquet into this folder.")] = "",
    resend: Annotated[
        bool, typer.Option("--resend", help="Send them back to the topics they came from.")
    ] = False,
    delay: Annotated[
        str, typer.Option(metavar="TIME", help="With --resend: how long they wait first, as 10m.")
    ] = "",
    marks: Annotated[
        bool,
        typer.Option(
            "--marks/--no-marks", help="With --resend: keep a letter's place in a header."
        ),
    ] = True,
    bootstrap: options.Bootstrap = DEFAULT_BOOTSTRAP,
    kafka_option: options.KafkaOption = None,
    step: options.StepRecords = DEAD_LETTERS_STEP_RECORDS,
    checkpoint: options.Checkpoint = "",
    master: options.Master = None,
    conf: options.Conf = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """What RocketMQ's consumers failed for good, how often and since when; and back with it."""
    from rockgate.pipeline.jobs import deadletters as job

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option),
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
@told
def run(
    function: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION")],
    into: Annotated[str, typer.Option("--out", metavar="TOPIC", help="Where its rows go.")],
    checkpoint: options.Checkpoint,
    inputs: Annotated[
        list[str],
        typer.Option("--in", metavar="TOPIC", help="What it reads; repeatable, in order."),
    ],
    bootstrap: options.Bootstrap = DEFAULT_BOOTSTRAP,
    kafka_option: options.KafkaOption = None,
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
    """A function of your own between topics: DataFrames in, one DataFrame out."""
    from rockgate.pipeline.jobs import run as job

    chosen = job.Options(
        cluster=options.cluster(bootstrap, kafka_option),
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
    """Print the file to hand to spark-submit: it takes the same words as this command."""
    typer.echo(str(Path(__file__).parents[1] / "submit.py"))
