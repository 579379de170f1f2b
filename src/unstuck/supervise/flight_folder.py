"""The folder of flight files: found as processes come, read while they run, folded in when they are gone."""

from __future__ import annotations

import os
import time

from unstuck.observer.gauge import Gauge, stat_fields
from unstuck.recorder import layout as at
from unstuck.recorder.cores import read_text

NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "lustre", "gpfs", "beegfs", "ceph", "afs")
)
DAY = 86_400.0
NEEDED_BYTES = 64 * at.SIZE
DEAD_KEPT = 300  # the latest dead processes whose state and files are kept; those that trained count separately
NOTHING_WRITTEN = (
    "no process has written a flight file: no Python of 3.10 or later was started, or it was cut off from its "
    "environment (python -E, -I or -S, sudo, a container), or the disk is full"
)


def make_folder() -> tuple[str | None, str]:
    """A private folder on a local disk with room for the flight files; else None and the reason."""
    why = ""
    for place in dict.fromkeys((os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp", "/dev/shm")):
        if not place or not os.path.isdir(place):
            continue
        if file_system(place) in NETWORK:
            why = why or f"{place} is on a network file system"
            continue
        _clear_abandoned(place)
        folder = os.path.join(os.path.abspath(place), f"unstuck-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            os.mkdir(folder, 0o700)
            _check_room(folder)
            return folder, ""
        except OSError as error:
            remove_folder(folder)
            why = why or f"{place}: {error.strerror}"
    return None, why or "no temporary folder"


def _clear_abandoned(place: str) -> None:
    """Remove what supervisors left that were killed more than a day ago: until then somebody may want to read it."""
    try:
        for entry in os.scandir(place):
            parts = entry.name.split("-")
            if len(parts) != 3 or parts[0] != "unstuck" or not parts[1].isdigit():
                continue
            known = entry.stat(follow_symlinks=False)
            if known.st_uid == os.getuid() and time.time() - known.st_mtime > DAY and not stat_fields(int(parts[1])):
                remove_folder(entry.path)
    except OSError:
        pass


def _check_room(folder: str) -> None:
    trial = os.path.join(folder, "room")
    handle = os.open(trial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, NEEDED_BYTES)
    finally:
        os.close(handle)
        os.unlink(trial)


def file_system(place: str) -> str:
    """Type of the file system a path is on, from the mount table."""
    lines = (line.split() for line in read_text("/proc/self/mounts").splitlines())
    mounts = [(words[1].replace("\\040", " ").rstrip("/") + "/", words[2]) for words in lines]
    around = [(len(point), kind) for point, kind in mounts if f"{place}/".startswith(point)]
    return max(reversed(around), key=lambda mount: mount[0], default=(0, ""))[1]  # the last mount lies on top


def remove_folder(folder: str) -> None:
    """Flight folders are flat; whatever cannot be removed is left."""
    try:
        for entry in os.scandir(folder):
            try:
                os.unlink(entry.path)
            except OSError:
                continue
        os.rmdir(folder)
    except OSError:
        pass


class FlightFolder:
    """All flight files of one run; `folder` is None where there can be none."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self._open: dict[str, Gauge] = {}
        self._trained: list[Gauge] = []
        self._helped: list[Gauge] = []
        self._lone: set[str] = set()
        self._folded: set[str] = set()
        self._by_pid: dict[int, Gauge] = {}

    @property
    def living(self) -> list[Gauge]:
        return list(self._open.values())

    @property
    def dead(self) -> list[Gauge]:
        """Last states of processes that are gone."""
        return [*self._trained, *self._helped]

    @property
    def news(self) -> int:
        """Facts written so far that are worth applying the rules to."""
        return sum(int(gauge.words[at.W_NEWS]) for gauge in (*self.living, *self.dead))

    @property
    def steps(self) -> int:
        """Of the process that is furthest on."""
        return max((int(gauge.words[at.W_STEP]) for gauge in (*self.living, *self.dead)), default=0)

    def scan(self) -> None:
        """Take in new files, fold in those whose process is gone."""
        if self.folder is None:
            return
        try:
            every = set(os.listdir(self.folder))
        except OSError:  # the script deleted it; what is mapped can still be read
            every = set()
        names = {name for name in every if name.endswith(at.FLIGHT)}
        self._lone = {n for n in every if n.endswith(at.RECORDS) and n[: -len(at.RECORDS)] + at.FLIGHT not in every}
        for name in names - self._open.keys() - self._folded:
            gauge = Gauge.open(os.path.join(self.folder, name))
            if gauge is not None:
                self._open[name] = self._by_pid[gauge.pid] = gauge
        ordered = sorted(self._open.items(), key=lambda item: item[1].number)
        latest = {gauge.key: gauge for _, gauge in ordered}
        for name, gauge in ordered:
            writer = gauge.writer() if latest[gauge.key] is gauge else "replaced"
            if writer == "runs":
                self._by_pid[gauge.pid] = gauge
            else:
                self._fold(name, gauge, ended=writer == "replaced")

    def _fold(self, name: str, gauge: Gauge, *, ended: bool = False) -> None:
        """Keep its last state in memory; where there are too many, it takes the place of the oldest."""
        self._folded.add(name)
        del self._open[name]
        kept = self._trained if gauge.trained else self._helped
        kept.append(gauge.frozen(ended=ended))
        self._by_pid[gauge.pid] = kept[-1]
        gauge.close()
        if len(kept) > DEAD_KEPT:
            self._forget(kept.pop(0))

    def _forget(self, gauge: Gauge) -> None:
        if self._by_pid.get(gauge.pid) is gauge:
            del self._by_pid[gauge.pid]
        self._folded.discard(os.path.basename(gauge.path))
        for suffix in (at.STACKS, at.FLIGHT, at.RECORDS, at.SIGNALS, at.HEARD, at.LEARNING, at.DATA_STATS):
            try:
                os.unlink(gauge.sibling(suffix))
            except OSError:
                pass

    def probes_off(self) -> tuple[tuple[str, str], ...]:
        """Faults of processes that could not have a flight file, and so wrote nothing but a journal."""
        if self.folder is None:
            return ()
        if not self._lone:
            return () if self.living or self.dead else (("recorder", NOTHING_WRITTEN),)
        from unstuck.observer.journals import parse
        from unstuck.recorder.records import ProbeOff

        off = []
        for name in sorted(self._lone):
            try:
                with open(os.path.join(self.folder, name), "rb") as file:
                    records = list(parse(file.read()))
            except OSError:
                continue
            off += [(record.probe, record.why) for record in records if isinstance(record, ProbeOff)]
        return tuple(dict.fromkeys(off))

    def gauge_of(self, pid: int) -> Gauge | None:
        """Of a living process, or the last state of a dead one."""
        return self._by_pid.get(pid)

    def keep_copy(self, target: str) -> None:
        """Copy the raw files: enough for `unstuck report` after everything else is gone."""
        if self.folder is None or not os.path.isdir(self.folder):
            return
        os.makedirs(target, mode=0o700, exist_ok=True)
        for entry in os.scandir(self.folder):
            try:
                if entry.is_file() and entry.stat().st_size:
                    _copy(entry.path, os.path.join(target, entry.name))
            except OSError:
                continue

    def close(self) -> None:
        for gauge in self._open.values():
            gauge.close()
        self._open.clear()
        if self.folder is not None:
            remove_folder(self.folder)


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as old, open(target, "wb") as new:
        new.write(old.read())
