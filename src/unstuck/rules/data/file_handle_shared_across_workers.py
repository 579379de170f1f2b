"""file-handle-shared-across-workers: several workers read through one open file, and move each other's offset.

What it sees
    A file was open when the workers were forked, so they and main have one open file description, with one offset for
    all. Each of them saw that offset move while it did not touch the file itself: so at least two of them move it.

Why it matters
    Between one worker's `seek` and its `read` another one seeks: the samples are silently mixed with other samples, or
    they do not decode and the worker raises. Which sample it hits changes from run to run.

Evidence
    The path and the descriptor, the processes, and the offsets that each of them left and found. The workers got the
    file from the fork, so it is one open file. Reads that do not move the offset (pread, mmap) never show it.

Fix
    Open the file in the worker: on first use in `__getitem__`, or in `worker_init_fn`. Or read with `os.pread` or
    `np.memmap`, which need no offset.

When it is wrong
    One worker together with a main process that reads the same file is not reported: they may well take turns. It errs
    if the workers share the file on purpose and read whole records with a single `read` each, as from a queue; or if a
    lock that cannot be found from the dataset guards each seek and read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from unstuck.model import Case, Finding, Where
from unstuck.recorder.records.loaders import LoaderSettings, MovedHandle
from unstuck.rules.loader_reports import first_of, settings_of
from unstuck.rules.rule import Rule


@dataclass(frozen=True)
class SharedFile:
    """One file, as each process of one loader saw it."""

    main: MovedHandle
    settings: LoaderSettings
    workers: dict[int, MovedHandle] = field(default_factory=dict)  # by number, the latest of each

    @property
    def path(self) -> str:
        return self.main.path.removesuffix(" (deleted)")

    @property
    def misread(self) -> bool:
        """Two workers or more read, or their dataset holds the file, and no lock guards it."""
        workers = self.workers.values()
        return sum(bool(each.reads or each.attribute) for each in workers) > 1 and not any(w.guarded for w in workers)


def decide(case: Case) -> Iterable[Finding]:
    for shared in _shared_files(case):
        if not shared.misread:
            continue
        settings, main = shared.settings, shared.main
        holder = next((worker for worker in shared.workers.values() if worker.attribute), None)
        held = f"{settings.dataset or 'the dataset'}.{holder.attribute}" if holder else "opened earlier"
        opened, getitem = holder.opened if holder else None, settings.dataset_site
        pids = [f"worker {number} (pid {each.pid})" for number, each in sorted(shared.workers.items())[:8]]
        yield RULE.finding(
            severity="error",
            confidence=0.95,
            title=f"{len(shared.workers)} workers read through one open {os.path.basename(shared.path)} ({held}): each "
            "moves the offset at which the others read",
            evidence=(
                f"{shared.path} is descriptor {main.fd} of the main process (pid {main.pid}) and of {', '.join(pids)}",
                "it was open before the workers were forked: all these descriptors are one open file, with one offset",
                *_moves(shared),
                "a reader that is alone, and reads that move no offset (pread, mmap), would not show this",
            ),
            where=first_of(main.pid, None, opened, getitem, settings.site),
            fix="Open the file in each worker: keep the path in `__init__`, and open it on first use in `__getitem__` "
            "(or in `worker_init_fn`). Or read with `os.pread` or `np.memmap`, which need no offset.",
            also=(Where(*getitem),) if opened and getitem else (),
        )


def _shared_files(case: Case) -> Iterator[SharedFile]:
    """Files whose offset every process of a loader, main too, saw moving without its own doing."""
    shared: dict[tuple[int, ...], SharedFile] = {}
    most: dict[tuple[int, int], int] = {}
    for started in case.workers_started:
        loader = (started.pid, started.number)
        most[loader] = max(most.get(loader, 0), len(started.pids))
        for main in (moved for moved in case.moved_handles if moved.pid == started.pid):
            known = shared.setdefault((*loader, *_file(main)), SharedFile(main, settings_of(case, *loader)))
            for moved in case.moved_handles:
                if moved.pid in started.pids and _file(moved) == _file(main):
                    known.workers[started.pids.index(moved.pid)] = moved
    for (pid, number, *_), file in shared.items():
        if len(file.workers) == most[pid, number]:
            yield file


def _file(moved: MovedHandle) -> tuple[int, int, int]:
    return moved.fd, moved.device, moved.inode


def _moves(shared: SharedFile) -> Iterator[str]:
    """The offset as some workers and main left it, and as they found it."""
    for number, worker in sorted(shared.workers.items())[:3]:
        left, came = worker.seen[-1]
        times = f" ({worker.times} times so far)" if worker.times > 1 else ""
        yield f"worker {number} left it at byte {left} after a batch and found it at {came} before the next{times}"
    left, came = shared.main.seen[-1]
    yield f"it went from {left} to {came} while the main process waited for a batch"


RULE = Rule(
    "file-handle-shared-across-workers",
    "data",
    decide,
    explains=frozenset({"sample-raises", "uncaught-exception"}),
    gathers=True,
)
