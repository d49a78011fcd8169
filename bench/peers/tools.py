"""The programs that peers need: a JDK to run on, and Maven to bring their jars once."""

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
    """The `java` to run peers with; ToolMissing says what to install."""
    jdk = find_jdk(environ)
    if jdk is None:
        raise ToolMissing(f"no JDK found: {ADVICE}")
    return jdk.home / "bin" / "java"


def find_maven(environ: Mapping[str, str] = os.environ) -> Path:
    """The `mvn` to bring jars with; ToolMissing says what to install."""
    found = shutil.which("mvn", path=environ.get("PATH", ""))
    if found is None:
        raise ToolMissing(f"no mvn found: {MAVEN_ADVICE}")
    return Path(found)
