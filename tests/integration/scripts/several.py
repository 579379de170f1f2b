"""Runs the scripts beside it that are named, one after the other, in one interpreter: torch is imported once."""

import runpy
import sys
from pathlib import Path

for name in sys.argv[1:]:
    print(name, flush=True)
    runpy.run_path(str(Path(__file__).with_name(name)), run_name="__main__")
