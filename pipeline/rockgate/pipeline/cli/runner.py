"""Runs a job from the command line: session, progress, and exit status."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol

import typer

from rockgate.pipeline.cli import options
from rockgate.pipeline.errors import PipelineError, Stopped
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.failures import spark_errors
from rockgate.pipeline.spark.session import (
    has_session,
    is_of_this_machine,
    open_session,
    spark_version,
    where,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
Job = Callable[["SparkSession", Any, Reporter], None]
INTERRUPTED_STATUS = 130


class Chosen(Protocol):
    """A job's options."""

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose failures are one line on standard error and an exit status."""

    @functools.wraps(command)
    def wrapped(*arguments: P.args, **flags: P.kwargs) -> None:
        try:
            spark_version()
            with spark_errors():
                command(*arguments, **flags)
        except PipelineError as error:
            typer.echo(f"rockgate pipeline: {error}", err=True)
            raise typer.Exit(error.status) from None
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            typer.echo(f"rockgate pipeline: {place}{error.strerror or error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("rockgate pipeline: Interrupted before the job started.", err=True)
            raise typer.Exit(INTERRUPTED_STATUS) from None

    return wrapped


def run_job(
    name: str,
    job: Job,
    chosen: Chosen,
    *,
    master: str | None,
    conf: Sequence[str] | None,
    json: bool,
    quiet: bool,
) -> None:
    """Run a job with its options, in a new session unless there is one already."""
    reporter = Reporter(name, is_json=json, is_quiet=quiet)
    extra = options.pairs(conf, "--conf")
    chosen.check(is_here=is_of_this_machine(master))
    is_own = not has_session()
    spark = open_session(f"rockgate {name}", master=master, extra=extra)
    try:
        place = where(spark)
        if place:
            reporter.say(place)
        job(spark, chosen, reporter)
    except Stopped as error:
        reporter.done(str(error))
        raise typer.Exit(error.status) from None
    finally:
        # In order, or a cluster's workers would restart executors while the driver exits.
        if is_own:
            spark.stop()
