"""Finding a JDK that Spark and the Java clients can run on.

JAVA_HOME is tried first, then PATH; the first whose `java -version` is one of VERSIONS is used.
Newer or older ones are skipped, because Spark 4.0 supports only these.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VERSIONS = (17, 21)
ADVICE = (
    "install a JDK 17 or 21 and put it on PATH or name it in JAVA_HOME "
    "(on Debian: apt-get install openjdk-17-jdk-headless)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdk:
    """One JDK: the value of JAVA_HOME, and its major version."""

    home: Path
    version: int


def find_jdk(environ: Mapping[str, str]) -> Jdk | None:
    """Return the first usable JDK of this environment, or None."""
    for java in candidates(environ):
        version = major_version(java)
        if version in VERSIONS:
            # `java` on PATH is often a chain of links; the JDK is where it ends.
            return Jdk(home=java.resolve().parent.parent, version=version)
    return None


def candidates(environ: Mapping[str, str]) -> list[Path]:
    """The `java` programs to try, in order."""
    found: list[Path] = []
    if environ.get("JAVA_HOME"):
        found.append(Path(environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        found.append(Path(on_path))
    return found


def major_version(java: Path) -> int | None:
    """Return the major version of a `java`; None if it does not run or its output is unknown."""
    try:
        # Java prints its version on standard error.
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None
