"""The folder of flight files: found as processes come, read while they run, folded in when they are gone."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from unstuck.model import Fact, Flight
from unstuck.record import layout as at
from unstuck.record.reader import FlightFile

NETWORK = frozenset(("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "lustre", "gpfs", "beegfs", "ceph", "afs"))
NEEDED = 64 * at.SIZE
DEAD_KEPT = 400
"""Dead processes whose last state is kept; beyond that only their number."""


def make_folder() -> tuple[Path | None, str]:
    """A private folder on a local disk with room for the flight files; else None and the reason."""
    why = ""
    for place in dict.fromkeys((os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp", "/dev/shm")):
        if not place or not os.path.isdir(place):
            continue
        if _file_system(place) in NETWORK:
            why = why or f"{place} is on a network file system"
            continue
        try:
            folder = Path(tempfile.mkdtemp(prefix="unstuck-", dir=place))
        except OSError as error:
            why = why or f"{place}: {error.strerror}"
            continue
        try:
            with tempfile.TemporaryFile(dir=folder) as trial:
                os.posix_fallocate(trial.fileno(), 0, NEEDED)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            why = why or f"{place}: {error.strerror}"
            continue
        return folder, ""
    return None, why or "no temporary folder"


def _file_system(place: str) -> str:
    """Type of the file system a path is on, from the mount table."""
    best, kind = "", ""
    try:
        with open("/proc/self/mounts") as mounts:
            for line in mounts:
                _, point, this, *_ = line.split()
                if (place + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                    best, kind = point, this
    except (OSError, ValueError):
        return ""
    return kind


class Hangar:
    """All flight files of one run."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.open: dict[str, FlightFile] = {}
        self.dead: list[Flight] = []
        self.dead_facts: list[Fact] = []
        self.gone = 0
        self._folded: set[str] = set()
        self._stems: dict[int, Path] = {}

    def scan(self) -> None:
        """Take in new files, fold in those whose process is gone."""
        if self.folder is None:
            return
        try:
            names = {entry.name for entry in os.scandir(self.folder) if entry.name.endswith(at.FLIGHT)}
        except OSError:
            return
        for name in names - self.open.keys() - self._folded:
            file = FlightFile.open(self.folder / name)
            if file is not None:
                self.open[name] = file
                self._stems[file.pid] = file.path
        for name, file in list(self.open.items()):
            if not file.alive():
                self._fold(name, file)

    def _fold(self, name: str, file: FlightFile) -> None:
        self.gone += 1
        self._folded.add(name)
        del self.open[name]
        self.dead_facts.extend(file.read_facts())
        if len(self.dead) < DEAD_KEPT:
            self.dead.append(file.flight(alive=False))
        file.close()
        for suffix in (at.STACKS, at.SIGNALS, at.FLIGHT, at.FACTS):
            path = file.path.with_suffix(suffix)
            try:
                if suffix in (at.STACKS, at.SIGNALS) and path.stat().st_size:
                    continue  # somebody may still want to read these
                if self.gone > 1 or suffix in (at.STACKS, at.SIGNALS):
                    path.unlink()
            except OSError:
                pass

    def file_of(self, pid: int) -> FlightFile | None:
        return next((file for file in self.open.values() if file.pid == pid), None)

    def stem_of(self, pid: int) -> Path | None:
        """The flight file's path, whose siblings hold facts and stacks; also after the process is gone."""
        return self._stems.get(pid)

    def flights(self) -> dict[int, Flight]:
        """Living processes by pid, as they stand now."""
        return {file.pid: file.flight(alive=True) for file in self.open.values()}

    def facts(self) -> tuple[Fact, ...]:
        found = [*self.dead_facts, *(fact for file in self.open.values() for fact in file.read_facts())]
        return tuple(sorted(found, key=lambda fact: fact.at))

    def keep_copy(self, target: Path) -> None:
        """Copy the raw files beside the report: enough for `unstuck report` after everything else is gone."""
        if self.folder is None:
            return
        target.mkdir(mode=0o700, exist_ok=True)
        for entry in os.scandir(self.folder):
            try:
                if entry.stat().st_size:
                    shutil.copy2(entry.path, target / entry.name)
            except OSError:
                continue

    def close(self) -> None:
        for file in self.open.values():
            file.close()
        self.open.clear()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
