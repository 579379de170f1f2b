"""Seam: what `unstuck.DataLoader` does about a fault goes into the records, and from there into the report."""

from __future__ import annotations

from .. import guard, journal
from ..records.loaders import Healed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install(module: Any) -> None:
    """`module` is the quarantine of heal's loader."""

    def note(act: Any) -> None:
        guard.attempt("healing", _write, act)

    guard.on("healing", module.heard_by(note))


def _write(act: Any) -> None:
    sample = act.sample if act.sample is None or type(act.sample) is int else str(act.sample)
    journal.write(Healed(act=act.kind, what=act.what, sample=sample, worker=act.worker, reason=act.reason))
