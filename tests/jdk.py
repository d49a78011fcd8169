"""Finding a JDK that Spark and the Java clients can run on.

JAVA_HOME is asked first, then PATH; the first whose `java -version` is one of VERSIONS wins. A
newer or older one is passed over, because Spark 4.0 supports these and no others.
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
    """One JDK: what JAVA_HOME must say, and its major version."""

    home: Path
    version: int


def find_jdk(environ: Mapping[str, str]) -> Jdk | None:
    """The first usable JDK that this environment leads to, or None."""
    for java in candidates(environ):
        version = major_version(java)
        if version in VERSIONS:
            # `java` on PATH is often a chain of links; the JDK is where the chain ends.
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
    """What `java -version` says it is; None when it does not run or says nothing we know."""
    try:
        # Java prints its version on standard error.
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None
