"""Getting Spark's Kafka connector: one way for jobs, tests, documents and benchmarks.

Spark does not bring its connector along. `configuration()` gives the settings of a session that has
it, by the first of these that is possible:

1. the jars of the folder that ROCKGATE_CONNECTOR_JARS names (a machine without a network);
2. jars that an earlier call has put into the user's cache;
3. Maven, if `mvn` is on PATH: four jars, copied into that cache once;
4. Spark's own way, `spark.jars.packages`, which asks for more than it needs but needs no Maven.

Where packages come from is a matter of the machine's own settings, for Maven and for Spark alike.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rockgate.pipeline.errors import NotInstalled

JARS_VARIABLE = "ROCKGATE_CONNECTOR_JARS"
FETCH_SECONDS_MAX = 600
POM = Path(__file__).with_name("pom") / "connector.xml"
_OUTPUT_LINES_MAX = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The jars that go with one Spark."""

    connector: str
    token: str
    clients: str
    pool: str


# What each Spark was built with. The token provider of 4.2 is not everywhere to be had; that of 4.0
# serves as well, because only delegation tokens use it.
KNOWN = {
    "4.0": Versions(connector="4.0.0", token="4.0.0", clients="3.9.0", pool="2.12.0"),
    "4.2": Versions(connector="4.2.0", token="4.0.0", clients="3.9.2", pool="2.13.1"),
    "4.3": Versions(connector="4.2.0", token="4.0.0", clients="3.9.2", pool="2.13.1"),
}


def versions(spark: str) -> Versions:
    """The jars for this version of Spark."""
    known = KNOWN.get(".".join(spark.split(".")[:2]))
    if known is None:
        raise NotInstalled(
            f"No connector is known for Spark {spark}. "
            f"Install pyspark {' or '.join(f'{each}.0' for each in KNOWN)}."
        )
    return known


def coordinates(spark: str) -> str:
    """The connector's Maven coordinates, for `--packages` and `spark.jars.packages`."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{versions(spark).connector}"


def configuration(spark: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Settings that give a session of this Spark the connector."""
    named = environ.get(JARS_VARIABLE)
    if named:
        return _jars_setting(_jars_of(Path(named)))
    cached = jar_directory(spark, environ)
    if not cached.is_dir() and shutil.which("mvn", path=environ.get("PATH", "")) is None:
        return {"spark.jars.packages": coordinates(spark)}
    return _jars_setting(_jars_of(fetch(spark, environ)))


def jar_directory(spark: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the jars for this Spark are cached, or will be: a folder of the user's cache."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = versions(spark)
    name = f"{found.connector}-{found.token}-{found.clients}-{found.pool}"
    return cache / "rockgate" / "spark-connector" / name


def fetch(spark: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with the jars, brought by Maven if they are not there yet."""
    target = jar_directory(spark, environ)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(target.name + ".lock")):
        if not target.is_dir():
            _fill(target, versions(spark), environ)
    return target


def _fill(target: Path, wanted: Versions, environ: Mapping[str, str]) -> None:
    # Filled under another name and renamed: a folder that exists is complete.
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    command = [
        *("mvn", "--batch-mode", "--quiet", "--file", str(POM), "dependency:copy-dependencies"),
        # Spark has what the connector depends on besides these four.
        *("-DexcludeTransitive=true", f"-DoutputDirectory={aside}"),
        *(f"-Dconnector.version={wanted.connector}", f"-Dtoken.version={wanted.token}"),
        *(f"-Dclients.version={wanted.clients}", f"-Dpool.version={wanted.pool}"),
    ]
    try:
        done = subprocess.run(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
        if done.returncode:
            output = "\n".join(done.stdout.splitlines()[:_OUTPUT_LINES_MAX])
            raise NotInstalled(f"mvn could not fetch Spark's Kafka connector:\n{output}")
        aside.rename(target)
    except subprocess.TimeoutExpired:
        raise NotInstalled(
            f"mvn took more than {FETCH_SECONDS_MAX} s to fetch Spark's Kafka connector."
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _jars_of(folder: Path) -> list[Path]:
    jars = sorted(folder.glob("*.jar"))
    if not any(jar.name.startswith("spark-sql-kafka") for jar in jars):
        raise NotInstalled(f"No Spark Kafka connector found in {folder}.")
    return jars


def _jars_setting(jars: list[Path]) -> dict[str, str]:
    return {"spark.jars": ",".join(str(jar) for jar in jars)}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
