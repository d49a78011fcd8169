"""`run`: a user's own function between topics, with the jobs' options, checkpoints and errors.

The function takes one DataFrame for each topic that goes in, in the order given, and returns one;
its column `value`, and `key`, `headers`, `partition`, `topic` if there are such, go out.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rockgate.pipeline.admin import probe
from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.files import checkpoint, paths
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka, shipped_code
from rockgate.pipeline.spark.failures import spark_errors
from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics
from rockgate.pipeline.spark.records import for_sink
from rockgate.pipeline.spark.remote import is_remote
from rockgate.pipeline.stream import Pace, Stopping, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Function = Callable[..., "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `run`."""

    cluster: Cluster
    function: str
    """module:function."""
    inputs: tuple[str, ...]
    output: str
    checkpoint: str
    reading: Reading = field(default_factory=Reading)
    pace: Pace = field(default_factory=Pace)

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""
        load(self.function)
        self.reading.check()
        if is_here:
            paths.check_folder(self.checkpoint, "--checkpoint")
        probe.check_topics(self.cluster, self.inputs)


def load(name: str) -> Function:
    """The function that module:function names; modules of the current folder are found, too."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise BadOption(f"{name!r} is not of the form module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadOption(
            f"No module {error.name} in the current directory or among installed packages."
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise BadOption(f"Module {module_name} has no function {function_name}.")
    return function  # type: ignore[no-any-return]  # Whatever it is, it can be called.


def run(
    spark: SparkSession, options: Options, reporter: Reporter, stopping: Stopping | None = None
) -> None:
    """Run the function until its topics are through, or until stopped."""
    function = load(options.function)
    if is_remote(spark) and hasattr(function, "__module__"):
        # Its own Python functions are called at the server, which does not have the module.
        shipped_code.whole(function)
    with Admin(spark, options.cluster) as admin:
        admin.partition_counts(options.inputs)
    frames = [
        kafka.stream(spark, options.cluster, Topics(names=(topic,)), options.reading)
        for topic in options.inputs
    ]
    with spark_errors():
        result = for_sink(_call(function, options.function, frames))
    progress = Files(spark, options.checkpoint)
    checkpoint.claim(
        progress,
        {
            "job": "run",
            "function": options.function,
            "in": ",".join(options.inputs),
            "out": options.output,
            "bootstrap": options.cluster.bootstrap,
        },
    )
    reporter.say(f"{', '.join(options.inputs)} through {options.function} to {options.output}")
    run_stream(
        result,
        lambda frame, number: kafka.write(frame, options.cluster, options.output),
        checkpoint=progress.uri(),
        pace=options.pace,
        reporter=reporter,
        stopping=stopping,
    )
    reporter.done(f"written to {options.output}")


def _call(function: Function, name: str, frames: list[DataFrame]) -> DataFrame:
    try:
        result = function(*frames)
    except TypeError as error:
        raise BadOption(f"{name} does not accept {len(frames)} DataFrames: {error}.") from error
    if not hasattr(result, "writeStream"):
        raise BadOption(f"{name} must return a DataFrame, not {type(result).__name__}.")
    return result
