"""file-handle-shared-across-workers: several workers read through one open file, and move each other's place in it.

What it sees
    A file was open when the workers were forked, so they and main have one open file description, with one offset for
    all. Each of them saw that offset move while it did not touch the file itself: so at least two of them move it.

Why it matters
    Between one worker's `seek` and its `read` another one seeks: the samples are parts of other samples, silently, or
    they do not decode and the worker raises. Which sample it hits changes from run to run.

Evidence
    The path and the descriptor, the processes, and the offsets each of them found and had left. The workers have the
    file from the fork, so it is one open file. Reads that do not move the offset (pread, mmap) never show it.

Fix
    Open the file in the worker: on first use in `__getitem__`, or in `worker_init_fn`. Or read with `os.pread` or
    `np.memmap`, which need no offset.

When it is wrong
    One worker beside a main process that reads the same file is not judged: they may well take turns. It errs if the
    workers share the file on purpose and read whole records with a single `read` each, as from
    a queue; or if a lock that cannot be seen from the data set guards each seek and read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loaders import LoaderSettings, MovedHandle
from unstuck.rules.rule import Rule


@dataclass(frozen=True)
class Users:
    """One file, and what each process of one loader saw of it."""

    main: MovedHandle
    settings: LoaderSettings
    workers: dict[int, MovedHandle] = field(default_factory=dict)
    """By number; the latest of each."""

    @property
    def file(self) -> str:
        return self.main.path.removesuffix(" (deleted)")

    def reading(self) -> int:
        """Workers that are known to read, or whose dataset holds the file."""
        return sum(bool(worker.reads or worker.attribute) for worker in self.workers.values())

    @property
    def guarded(self) -> bool:
        return any(worker.guarded for worker in self.workers.values())


def decide(case: Case) -> Iterable[Finding]:
    for users in _shared(case):
        if users.guarded or users.reading() < 2:
            continue
        settings = users.settings
        named = next((worker for worker in users.workers.values() if worker.attribute), None)
        held = f"{settings.dataset or 'the data set'}.{named.attribute}" if named else "a file opened before"
        site, giving = named.opened if named else None, settings.dataset_site
        file, line, function = site or giving or settings.site or (None, None, None)
        yield RULE.finding(
            severity="error",
            confidence=0.95,
            title=f"{len(users.workers)} workers read through one open {os.path.basename(users.file)} ({held}): "
            f"each moves the place at which the others read",
            evidence=(
                f"{users.file} is descriptor {users.main.fd} of the main process (pid {users.main.pid}) and of "
                + ", ".join(f"worker {number} (pid {each.pid})" for number, each in sorted(users.workers.items())[:8]),
                "it was open before the workers were forked: all these descriptors are one open file, with one offset",
                *_moves(users),
                "a reader that is alone, and reads that move no offset (pread, mmap), would not show this",
            ),
            where=Where(file, line, function, pid=users.main.pid),
            fix=Fix(
                "Open the file in each worker: keep the path in `__init__`, and open it on first use in `__getitem__` "
                "(or in `worker_init_fn`). Or read with `os.pread` or `np.memmap`, which need no offset."
            ),
            seen_by="flight",
            also=(Where(file=giving[0], line=giving[1], function=giving[2]),) if site and giving else (),
        )


def _shared(case: Case) -> Iterator[Users]:
    """Files of which every process of a loader, main too, saw the offset move without its own doing."""
    settings = {(about.pid, about.number): about for about in case.loaders}
    found: dict[tuple[object, ...], Users] = {}
    most: dict[tuple[int, int], int] = {}
    for started in case.workers_started:
        loader = (started.pid, started.number)
        most[loader] = max(most.get(loader, 0), len(started.pids))
        numbers = {pid: number for number, pid in enumerate(started.pids)}
        for main in (moved for moved in case.moved_handles if moved.pid == started.pid):
            about = settings.get(loader) or LoaderSettings(pid=started.pid, number=started.number)
            known = found.setdefault((*loader, *_file(main)), Users(main, about))
            for moved in case.moved_handles:
                if moved.pid in numbers and _file(moved) == _file(main):
                    known.workers[numbers[moved.pid]] = moved
    for users in found.values():
        if len(users.workers) == most[users.settings.pid, users.settings.number]:
            yield users


def _file(moved: MovedHandle) -> tuple[int, int, int]:
    return moved.fd, moved.device, moved.inode


def _moves(users: Users) -> list[str]:
    """What two workers and main found: the offset as they had left it, and as it was when they came back."""
    told = []
    for number, worker in sorted(users.workers.items())[:3]:
        left, came = worker.seen[-1]
        told.append(
            f"worker {number} left it at byte {left} when a batch was done and found it at {came} when the next began"
            + (f" ({worker.times} times so far)" if worker.times > 1 else "")
        )
    left, came = users.main.seen[-1]
    told.append(f"it went from {left} to {came} while the main process waited for a batch")
    return told


RULE = Rule(
    "file-handle-shared-across-workers",
    "data",
    decide,
    explains=frozenset(("sample-raises", "uncaught-exception")),
    gathers=True,
)
