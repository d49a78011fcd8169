"""`python -m bench.requests`."""

import sys

from bench.requests.run import main

if __name__ == "__main__":
    sys.exit(main())
