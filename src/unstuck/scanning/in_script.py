"""The scan of a script's training loader, inside that script."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from time import monotonic

from ..recorder import cores, journal, objects
from ..recorder.probes.data import loader_source
from . import pass_outcome, plan
from .full_pass import FullPass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..takeover.inside import Takeover
    from ..takeover.loaders_in_use import LoaderInUse

TOLD_SECONDS = 0.2  # between two words of how far it is


def scan(takeover: Takeover, used: LoaderInUse) -> dict[str, Any]:
    """The record, as plain data."""
    options, loader = takeover.options, used.loader
    reading = plan.of_loader(loader, options.get("limit"), options.get("workers") or cores.whole())
    scan = FullPass(reading, float(options["seconds_per_sample"]), takeover.patience, takeover.folder)
    began = told = monotonic()

    def progress(done: int, of: int | None) -> None:
        nonlocal told
        if monotonic() - told > TOLD_SECONDS:
            told = monotonic()
            takeover.tell("progress", done=done, of=of, seconds=told - began)

    scan.run(progress)
    site = used.loading.site if used.loading is not None else None
    made = (*used.built_at, "") if used.built_at else loader_source.made(loader, sys._getframe(1))
    sampler = objects.class_name(type(loader.__dict__.get("sampler")))
    found = pass_outcome.record(scan, pass_outcome.describe(reading, site, made, sampler), used.trained)
    plain: dict[str, Any] = journal.plain(replace(found, pid=os.getpid()))
    return plain
