"""unstuck tells you why a PyTorch training is stuck, and where.

From a shell: `unstuck run train.py`. From a script or notebook: `unstuck.watch()`.
A whole dataset: `unstuck scan train.py`, `unstuck.scan(dataset)`.
"""

from __future__ import annotations

from unstuck.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.api import watch as watch
    from unstuck.scanning.scan_result import scan as scan
    from unstuck.tuning.session import tune as tune

__all__ = ["__version__", "scan", "tune", "watch"]


def __getattr__(name: str) -> object:
    # `unstuck --help` must not pay for what only scripts use.
    if name == "watch":
        from unstuck.api import watch

        return watch
    if name == "scan":
        from unstuck.scanning.scan_result import scan

        return scan
    if name == "tune":
        from unstuck.tuning.session import tune

        return tune
    raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
