"""Downloads a peer's jars once, by Maven coordinates, into a cache outside the repository.

The machine's Maven settings determine the repository. A cache entry is named after the peer, its
version and its pom, so a changed pom is downloaded again.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from bench.peers.cached_directory import cached_directory, user_cache
from bench.peers.errors import FetchFailed
from bench.peers.tools import find_java, find_maven

CACHE_VARIABLE = "BENCH_PEERS_CACHE"
FETCH_SECONDS_MAX = 900
POMS = Path(__file__).resolve().parent / "pom"
_VERSION_TAG = "{http://maven.apache.org/POM/4.0.0}peer.version"
_OUTPUT_LINES_MAX = 15


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory of cached jars: $BENCH_PEERS_CACHE, or a folder of the user's cache."""
    if environ.get(CACHE_VARIABLE):
        return Path(environ[CACHE_VARIABLE])
    return user_cache(environ) / "peers"


def version(peer: str) -> str:
    """The version that a peer's pom pins."""
    return pinned_version(POMS / peer / "pom.xml")


def pinned_version(pom: Path) -> str:
    """Return the `peer.version` of a pom."""
    tag = ElementTree.parse(pom).getroot().find(f".//{_VERSION_TAG}")
    assert tag is not None and tag.text, f"the pom of {pom.parent.name} has no peer.version"
    return tag.text


def jar_directory(peer: str, cache: Path | None = None) -> Path:
    """The directory of a peer's jars, downloaded or not."""
    digest = hashlib.sha256((POMS / peer / "pom.xml").read_bytes()).hexdigest()[:8]
    return (cache or cache_directory()) / f"{peer}-{version(peer)}-{digest}"


def fetch(peer: str, cache: Path | None = None) -> Path:
    """Return the directory of a peer's jars, downloaded by Maven if necessary."""
    pom = POMS / peer / "pom.xml"
    return cached_directory(jar_directory(peer, cache), lambda aside: bring(peer, pom, aside))


def bring(name: str, pom: Path, into: Path) -> None:
    """Have Maven copy the jars of a pom into a directory."""
    java, maven = find_java(), find_maven()
    command = [
        str(maven),
        *("--batch-mode", "--quiet", "--file", str(pom)),
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={into}",
    ]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "JAVA_HOME": str(java.parent.parent)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"mvn took more than {FETCH_SECONDS_MAX} s for {name}") from None
    if done.returncode:
        output = "\n".join(done.stdout.splitlines()[:_OUTPUT_LINES_MAX])
        raise FetchFailed(f"mvn ended with status {done.returncode} for {name}:\n{output}")
    if not any(into.glob("*.jar")):
        raise FetchFailed(f"mvn brought no jar for {name}")
