"""Under `unstuck scan`: runs the script until its training loader is in use, scans that loader's data set, and ends.

The training loader is the one whose batch came last before the first backward pass; without one, at the end of the
script, the first that was iterated.
"""

from __future__ import annotations

import json
import os
import sys

from . import data_read, facts, failures, lengths, probes, scan_pass, scan_progress, sites
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "UNSTUCK_SCAN"
_first: list[Any] = []
_latest: list[Any] = []
_made: dict[int, dict[str, Any]] = {}
_over = False
_owner = os.getpid()


def wanted() -> bool:
    return bool(os.environ.get(VARIABLE)) and not os.environ.get("UNSTUCK_SCANNING")


def opened(loader: Any) -> None:
    """A pass over a loader begins."""
    if os.getpid() != _owner or _over:
        return
    if not _first:
        _first.append(loader)
    _latest[:] = [loader]
    if id(loader) not in _made and len(_made) < 64:
        _made[id(loader)] = {"made": data_read.made(loader, sys._getframe(1)), "site": sites.call_site()}


def at_backward() -> None:
    """The training has begun."""
    if _latest and os.getpid() == _owner and not _over:
        run(_latest[0], trains=True)


def leaving() -> None:
    if _first and os.getpid() == _owner and not _over:
        run(_first[0], trains=False)


def run(loader: Any, trains: bool) -> None:
    """Scan, tell, and end the script. A fault of ours is told too."""
    global _over
    _over = True
    os.environ["UNSTUCK_SCANNING"] = "1"  # workers of ours, and what they start, are not to scan
    try:
        told = scan(loader, trains, json.loads(os.environ[VARIABLE]))
        facts.tell_anew("scan", {"loaders": [told]}, at.SCANNED)
    except Exception as fault:
        probes.off("scan", fault)
    finally:
        _leave()


def scan(loader: Any, trains: bool, options: dict[str, Any]) -> dict[str, Any]:
    own = loader.__dict__
    dataset, iterable = own["dataset"], lengths.is_iterable(loader)
    samples = None if iterable else len(dataset)
    limit = options.get("limit")
    if samples is not None and limit is not None:
        samples = min(samples, limit)
    workers = options.get("workers") or len(os.sched_getaffinity(0))
    work = scan_pass.Scan(
        dataset, samples=samples, iterable=iterable, workers=workers, seconds=float(options.get("seconds", 10.0))
    )
    context = own.get("_DataLoader__multiprocessing_context")
    work.method = getattr(context, "_name", None) or work.method
    work.init, work.limit = own.get("worker_init_fn"), limit
    bar = scan_progress.Bar("unstuck: scanning")
    work.run(bar)
    bar.clear()
    source = data_read.source(dataset)
    giving = getattr(type(source), "__iter__" if iterable else "__getitem__", None)
    return {
        "loader": 0,
        "trains": trains,
        "dataset": type(source).__qualname__,
        "dataset_site": sites.code_site(giving),
        "samples": None if iterable else len(dataset),
        "sampler": type(own.get("sampler")).__qualname__,
        "batch_size": own.get("batch_size"),
        **_made.get(id(loader), {"made": None, "site": None}),
        **work.plain(),
    }


def _leave() -> None:
    """End the script here and now: what it would do on its way out is no longer wanted."""
    for iterator in failures.living():
        for worker in iterator.__dict__.get("_workers") or ():
            try:
                worker.kill()
            except (AttributeError, OSError, ValueError):
                continue
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(0)
