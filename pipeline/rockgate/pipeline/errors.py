"""The errors of jobs, as users read them.

    PipelineError
    ├── NotInstalled      pyspark, a JDK or Spark's Kafka connector is missing
    ├── BadOption         an invalid option or combination, before anything is done
    ├── NotReachable      the server does not answer, or does not speak Kafka
    ├── UnknownTopic      a topic that should be there is not
    ├── WrongCheckpoint   the checkpoint was made by a job with other options
    ├── DataLost          records were deleted before the job could read them
    ├── Stopped           the job was ended before it was through; a rerun resumes
    └── JobFailed         Spark gave up; the message is the root of its reasons

Each message is a clause that names the values and, where there is one, the next step.
"""


class PipelineError(Exception):
    """The base class; `status` is the exit status."""

    status = 1


class NotInstalled(PipelineError):
    """A dependency of the jobs is missing."""

    status = 2


class BadOption(PipelineError):
    """An invalid option, or two that conflict."""

    status = 2


class NotReachable(PipelineError):
    """No Kafka server answers at the address."""


class UnknownTopic(PipelineError):
    """The topic does not exist."""


class WrongCheckpoint(PipelineError):
    """The checkpoint belongs to a job with other options."""


class DataLost(PipelineError):
    """Records were gone before they were read."""


class Stopped(PipelineError):
    """The job was stopped early; the message says what is left to do."""

    status = 130
    """A shell's status for a command that was ended by Ctrl-C."""


class JobFailed(PipelineError):
    """Spark ended the job."""
