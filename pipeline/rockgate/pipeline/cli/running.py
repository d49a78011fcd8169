"""From a command line to a job that runs: the session, the progress, and how the command ends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from rockgate.pipeline.cli import options
from rockgate.pipeline.errors import PipelineError
from rockgate.pipeline.session import has_session, open_session, spark_version, where
from rockgate.pipeline.telling import Teller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
Job = Callable[["SparkSession", Any, Teller], None]


def told(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose PipelineErrors are one line on standard error and an exit status."""

    @functools.wraps(command)
    def wrapped(*arguments: P.args, **flags: P.kwargs) -> None:
        try:
            spark_version()
            command(*arguments, **flags)
        except PipelineError as error:
            typer.echo(f"rockgate pipeline: {error}", err=True)
            raise typer.Exit(error.status) from None

    return wrapped


def run_job(
    name: str,
    job: Job,
    chosen: object,
    *,
    master: str | None,
    conf: Sequence[str] | None,
    json: bool,
    quiet: bool,
) -> None:
    """Run a job with its options, in a session of its own unless there is one already."""
    teller = Teller(name, is_json=json, is_quiet=quiet)
    extra = options.pairs(conf, "--conf")
    is_own = not has_session()
    spark = open_session(f"rockgate {name}", master=master, extra=extra)
    try:
        place = where(spark)
        if place:
            teller.say(place)
        job(spark, chosen, teller)
    finally:
        # In order, or a cluster's workers would start executors anew while the driver goes.
        if is_own:
            spark.stop()
