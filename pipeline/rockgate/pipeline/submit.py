"""What spark-submit is given: `spark-submit … submit.py archive --topic orders --into …`."""

import sys

if __name__ == "__main__":
    # spark-submit puts this file's folder first; its modules are not to be found as top-level ones.
    del sys.path[0]
    from rockgate.pipeline.cli import main

    main(sys.argv[1:])
