"""The programs that peers require: a JDK, and Maven to download their jars once."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.jdk import ADVICE, find_jdk

from bench.peers.errors import ToolMissing

MAVEN_ADVICE = (
    "install Apache Maven 3.6 or newer and put `mvn` on PATH (on Debian: apt-get install maven)"
)


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the `java` that runs peers; ToolMissing if there is none."""
    jdk = find_jdk(environ)
    if jdk is None:
        raise ToolMissing(f"no JDK found: {ADVICE}")
    return jdk.home / "bin" / "java"


def find_maven(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the `mvn` that downloads jars; ToolMissing if there is none."""
    found = shutil.which("mvn", path=environ.get("PATH", ""))
    if found is None:
        raise ToolMissing(f"no mvn found: {MAVEN_ADVICE}")
    return Path(found)
