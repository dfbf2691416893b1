"""Run as `python -m examples.kv_offload`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
