"""`python -m unstuck` is `unstuck`."""

from __future__ import annotations

import sys

from unstuck.commands import main

if __name__ == "__main__":
    sys.exit(main())
