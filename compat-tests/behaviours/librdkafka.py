"""librdkafka's own tests: built from the sources in its vendor's npm package, run one by one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from behaviours.bringing import CannotRun, cache_directory, debian_files, find, run
from bench.peers.cached_directory import cached_directory

PACKAGE = "@confluentinc/kafka-javascript"
PACKAGE_VERSION = "1.10.1"
INTEGRITY = (
    "KVePUBn21EqCVP9mfxzEuM3SYJHHEF7X+iiC2e43QQgDSyEaksInmCGooT3w5q+cNAdkSCrK71j0ICfqoSqZLw=="
)
"""The archive's SHA-512, as the registry states it."""
VERSION = "2.15.1"
SPEAKS_AS = "4.3.1"
TEST_SECONDS_MAX = 600
TIMEOUT_FACTOR = 2
"""The suite's own deadlines are for machines that do nothing else."""
# Without what is not part of the wire.
WITHOUT = ("--disable-gssapi", "--disable-curl")
HEADERS = ("libzstd-dev", "rapidjson-dev")
"""Debian's packages that the sources are built with; zstd is linked statically."""
ADVICE = (
    "install a C and C++ compiler, make and the headers of zlib and OpenSSL "
    "(on Debian: apt-get install build-essential zlib1g-dev libssl-dev)"
)


def built() -> Path:
    """The folder of the built tests."""
    for tool in ("gcc", "g++", "make"):
        find(tool, ADVICE)
    npm = find("npm", "install Node.js 18 or newer (on Debian: apt-get install nodejs npm)")

    def fill(aside: Path) -> None:
        run([npm, "pack", "--silent", f"{PACKAGE}@{PACKAGE_VERSION}"], aside)
        (archive,) = aside.glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != INTEGRITY:
            raise CannotRun(f"{archive.name} is not the archive that is pinned: sha512-{digest}")
        with tarfile.open(archive) as packed:
            packed.extractall(aside, filter="data")
        archive.unlink()
        sources = aside / "package" / "deps" / "librdkafka"
        headers = debian_files("librdkafka-headers", *HEADERS)
        (zstd,) = headers.glob("usr/lib/*/libzstd.a")
        with_zstd = {"CPPFLAGS": f"-I{headers}/usr/include", "STATIC_LIB_libzstd": str(zstd)}
        run(["./configure", *WITHOUT], sources, with_zstd)
        run(["make", "-j2", "libs"], sources)
        run(["make", "-j2", "-C", "tests", "build"], sources)
        for each in sources.rglob("*.o"):
            each.unlink()
        sources.rename(aside / "librdkafka")

    entry = cache_directory() / f"librdkafka-{VERSION}-{PACKAGE_VERSION}"
    return cached_directory(entry, fill) / "librdkafka" / "tests"


def run_test(
    name: str,
    folder: Path,
    aside: Path,
    *,
    settings: Mapping[str, object],
    variables: Mapping[str, object],
    scenario: str = "default",
    is_quick: bool = True,
    at: Path | None = None,
) -> str:
    """Run one test, in a folder or else in `aside`; return its state, or how its process ended."""
    configuration, report = aside / f"{name}.conf", aside / f"{name}.json"
    pairs = {
        **settings,
        "test.topic.random": "true",
        "test.topic.prefix": f"rdkafka{name[:4]}",
        "test.timeout.multiplier": TIMEOUT_FACTOR,
    }
    configuration.write_text("".join(f"{key}={value}\n" for key, value in pairs.items()))
    told = {
        **variables,
        "TESTS": name,
        "TEST_KAFKA_VERSION": SPEAKS_AS,
        "TEST_REPORT": report,
        "RDKAFKA_TEST_CONF": configuration,
        "LD_LIBRARY_PATH": f"{folder.parent / 'src'}{os.pathsep}{folder.parent / 'src-cpp'}",
    }
    # With CI its deadlines are others, and tests are left out.
    kept = {key: value for key, value in os.environ.items() if key != "CI"}
    quick = ("-Q",) if is_quick else ()
    command = [str(folder / "test-runner"), *quick, "-L", "-p1", "-s", scenario]
    with (aside / f"{name}.log").open("wb") as log:
        try:
            done = subprocess.run(
                command,
                cwd=at or aside,
                env={**kept, **{key: str(value) for key, value in told.items()}},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=TEST_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            return f"no end after {TEST_SECONDS_MAX} s"
    if not report.exists():
        return f"ended with status {done.returncode}"
    state: str = json.loads(report.read_text())["tests"][name]["state"]
    return state
