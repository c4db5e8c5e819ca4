"""python -m mooncake_config."""

import gc
import sys

gc.disable()  # what the imports make lives to the end, and looking through it for garbage takes its time

from mooncake_config.cli import main  # noqa: E402 - after the line above, which is about it

gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())
