"""`python -m rockgate.pipeline` is `rockgate pipeline`."""

from rockgate.pipeline.cli import main

if __name__ == "__main__":
    main()
