"""`rockgate pipeline`: the jobs on the command line.

Importing it needs neither pyspark nor a JDK: a job asks for them when it is run, and says what to
install if they are not there.
"""

from rockgate.pipeline.cli.commands import app, main

__all__ = ["app", "main"]
