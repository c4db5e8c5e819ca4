"""python -m mooncake_config."""

import sys

from mooncake_config.cli import main

if __name__ == "__main__":
    sys.exit(main())
