"""unstuck tells you why a PyTorch training is stuck, and where.

From a shell: `unstuck run train.py`. From a script or notebook: `unstuck.watch()`, `unstuck.watch(on_finding=…)`.
A whole dataset: `unstuck scan train.py`, `unstuck.scan(dataset)`.
Remedies, to use in a script: `unstuck.DataLoader(dataset)`, `unstuck.guard(optimizer)`, `unstuck.bounded(loader)`,
`unstuck.Plateau(optimizer)`.
"""

from __future__ import annotations

from unstuck.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.api import Watcher as Watcher
    from unstuck.api import watch as watch
    from unstuck.errors import UnstuckError as UnstuckError
    from unstuck.heal.bounded_loop import bounded as bounded
    from unstuck.heal.loader.healing_loader import DataLoader as DataLoader
    from unstuck.heal.plateau_stop import Plateau as Plateau
    from unstuck.heal.step_guard import guard as guard
    from unstuck.model import Finding as Finding
    from unstuck.scanning.scan_result import Scan as Scan
    from unstuck.scanning.scan_result import scan as scan
    from unstuck.tuning.session import tune as tune
    from unstuck.tuning.tuned import Tuned as Tuned

__all__ = [
    "DataLoader", "Finding", "Plateau", "Scan", "Tuned", "UnstuckError", "Watcher", "__version__", "bounded", "guard",
    "scan", "tune", "watch",
]  # fmt: skip

_HOMES = {
    "DataLoader": "unstuck.heal.loader.healing_loader",
    "Finding": "unstuck.model",
    "Plateau": "unstuck.heal.plateau_stop",
    "Scan": "unstuck.scanning.scan_result",
    "Tuned": "unstuck.tuning.tuned",
    "UnstuckError": "unstuck.errors",
    "Watcher": "unstuck.api",
    "bounded": "unstuck.heal.bounded_loop",
    "guard": "unstuck.heal.step_guard",
    "scan": "unstuck.scanning.scan_result",
    "tune": "unstuck.tuning.session",
    "watch": "unstuck.api",
}


def __getattr__(name: str) -> object:
    # `unstuck --help` must not pay for what only scripts use.
    if name not in _HOMES:
        raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
