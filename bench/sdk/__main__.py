"""Runs the benchmark of sending."""

import sys

from bench.sdk.send import main

if __name__ == "__main__":
    sys.exit(main())
