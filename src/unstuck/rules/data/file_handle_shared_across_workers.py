"""file-handle-shared-across-workers: several workers read through one open file, and move each other's place in it.

What it sees
    A file was open when the workers were forked, so they and main have one open file description, with one offset for
    all. Each of them saw that offset move while it did not touch the file itself: so at least two of them move it.

Why training stops
    Between one worker's `seek` and its `read` another one seeks: the samples are parts of other samples, silently, or
    they do not decode and the worker raises. Which sample it hits changes from run to run.

Evidence
    The path and the descriptor, the processes, the offsets each of them found and had left, and the kernel's own word
    (kcmp) that their descriptors are one open file. Reads that do not move the offset (pread, mmap) never show it.

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
from dataclasses import dataclass

from unstuck.model import Case, Fact, Finding, Fix, SharedFile, Where
from unstuck.rules.rule import Rule

KIND = "handle-moved"


@dataclass(frozen=True)
class Users:
    """One file, and what each process of one loader saw of it."""

    main: Fact
    workers: dict[int, Fact]
    """By number; the latest of each."""
    loader: Fact

    @property
    def file(self) -> str:
        return str(self.main.data["path"]).removesuffix(" (deleted)")

    def reading(self) -> int:
        """Workers that are known to read, or whose data set holds the file."""
        return sum(bool(fact.data.get("reads") or fact.data.get("attribute")) for fact in self.workers.values())

    @property
    def guarded(self) -> bool:
        return any(fact.data.get("guarded") for fact in self.workers.values())


def decide(case: Case) -> Iterable[Finding]:
    for users in _shared(case):
        if users.guarded or users.reading() < 2:
            continue
        settings = next((f.data for f in case.facts if f.kind == "loader" and _is_same(f, users.loader)), {})
        named = next((f.data for f in users.workers.values() if f.data.get("attribute")), {})
        held = f"{settings.get('dataset') or 'the data set'}.{named['attribute']}" if named else "a file opened before"
        site, giving = named.get("opened"), settings.get("dataset_site")
        file, line, function = site or giving or settings.get("site") or (None, None, None)
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="error",
            confidence=0.95,
            title=f"{len(users.workers)} workers read through one open {os.path.basename(users.file)} ({held}): "
            f"each moves the place at which the others read",
            evidence=(
                f"{users.file} is descriptor {users.main.data['fd']} of the main process (pid {users.main.pid}) and of "
                + ", ".join(f"worker {number} (pid {fact.pid})" for number, fact in sorted(users.workers.items())[:8]),
                *_moves(users),
                *_kernel(case, users),
                "a reader that is alone, and reads that move no offset (pread, mmap), would not show this",
            ),
            where=Where(file, line, function, pid=users.main.pid),
            fix=Fix(
                "Open the file in each worker: keep the path in `__init__`, and open it on first use in `__getitem__` "
                "(or in `worker_init_fn`). Or read with `os.pread` or `np.memmap`, which need no offset."
            ),
            seen_by="kernel",
            also=(Where(file=giving[0], line=giving[1], function=giving[2]),) if site and giving else (),
        )


def _shared(case: Case) -> Iterator[Users]:
    """Files of which every process of a loader, main too, saw the offset move without its own doing."""
    moved = [fact for fact in case.facts if fact.kind == KIND]
    found: dict[tuple[int, int, int, str], Users] = {}
    for started in case.facts:
        if started.kind != "workers":
            continue
        numbers = {pid: number for number, pid in enumerate(started.data["pids"])}
        for main in (fact for fact in moved if fact.pid == started.pid):
            key = (started.pid, started.data["loader"], main.data["fd"], str(main.data["file"]))
            known = found.setdefault(key, Users(main, {}, started))
            for fact in moved:
                if fact.pid in numbers and _file(fact) == _file(main):
                    known.workers[numbers[fact.pid]] = fact
    for (_, loader, _, _), users in found.items():
        most = max(len(f.data["pids"]) for f in case.facts if f.kind == "workers" and f.data["loader"] == loader)
        if len(users.workers) == most:
            yield users


def _file(fact: Fact) -> tuple[object, ...]:
    return fact.data["fd"], *fact.data["file"]


def _is_same(loader: Fact, started: Fact) -> bool:
    return loader.pid == started.pid and bool(loader.data["loader"] == started.data["loader"])


def _moves(users: Users) -> list[str]:
    """What two workers and main found: the offset as they had left it, and as it was when they came back."""
    told = []
    for number, fact in sorted(users.workers.items())[:3]:
        left, came = fact.data["seen"][-1]
        times = fact.data["times"]
        told.append(
            f"worker {number} left it at byte {left} when a batch was done and found it at {came} when the next began"
            + (f" ({times} times so far)" if times > 1 else "")
        )
    left, came = users.main.data["seen"][-1]
    told.append(f"it went from {left} to {came} while the main process waited for a batch")
    return told


def _kernel(case: Case, users: Users) -> list[str]:
    ours = {users.main.pid, *(fact.pid for fact in users.workers.values())}
    said = [file for file in case.shared_files if _speaks_of(file, users, ours)]
    if not said:
        return []
    pids = sorted({pid for file in said for pid in file.pids} & ours)
    offsets = [offset for file in said for offset in file.offsets]
    seen = f"; seen from outside its offset was {', '.join(map(str, offsets[-4:]))}" if len(offsets) > 1 else ""
    return [f"the kernel says that it is one open file in the processes {', '.join(map(str, pids))} (kcmp){seen}"]


def _speaks_of(file: SharedFile, users: Users, ours: set[int]) -> bool:
    same = file.fd == users.main.data["fd"] and file.path == users.main.data["path"]
    return same and len(ours & set(file.pids)) > 1


RULE = Rule(
    "file-handle-shared-across-workers",
    "data",
    decide,
    explains=frozenset(("sample-raises", "uncaught-exception")),
    gathers=True,
)
