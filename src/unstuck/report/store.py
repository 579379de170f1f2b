"""The run folder `.unstuck/<id>/`: made so that jobs never share one. Light: it is made before the training starts."""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import Case
    from unstuck.rules.diagnose import Diagnosis

FOLDER = ".unstuck"
CASE = "case.json"
REPORT = "report.json"
RUN = "run.json"  # command and end of a run that had no findings: with the flight files it makes a Case
FLIGHT = "flight"


class RunFolder:
    """One run's own folder. `note` says why it is not in the working directory; empty if it is."""

    def __init__(self, path: str, note: str = "") -> None:
        self.path, self.note = path, note

    @property
    def id(self) -> str:
        return os.path.basename(self.path)

    @property
    def name(self) -> str:
        """What to type after `unstuck report`."""
        return self.path if self.note else self.id

    def _check(self) -> None:
        if not self.path:
            raise OSError(errno.EROFS, self.note)

    def save(self, case: Case, diagnosis: Diagnosis) -> None:
        """Write case.json and report.json, each whole or not at all. Raises OSError."""
        self._check()
        from unstuck import serial
        from unstuck.report.report_file import write_report

        serial.dump_case(case, os.path.join(self.path, CASE))
        write_report(os.path.join(self.path, REPORT), case, diagnosis)

    def save_plain(self, run: dict[str, object]) -> None:
        """Write run.json alone: a healthy run needs no more. Raises OSError."""
        self._check()
        import json

        with open(os.path.join(self.path, RUN), "w", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")


def create(cwd: str | os.PathLike[str] | None = None) -> RunFolder:
    """A new run folder; a temporary one if none can be created in the working directory."""
    try:
        base = os.path.join(cwd if cwd is not None else os.getcwd(), FOLDER)
        try:
            os.mkdir(base, 0o700)
        except FileExistsError:
            if not os.path.isdir(base):
                raise
        ignore = os.path.join(base, ".gitignore")
        if not os.path.exists(ignore):
            with open(ignore, "w", encoding="utf-8") as file:
                file.write("*\n")
        return RunFolder(_make_unique(base))
    except FileNotFoundError:
        why = "the working directory is gone"
    except FileExistsError:
        why = "a file of that name is in the way"
    except OSError as error:
        why = error.strerror or str(error)
    elsewhere = _make_elsewhere()
    lost = "" if elsewhere else ", nor a temporary one: nothing of this run will be saved"
    return RunFolder(elsewhere, f"cannot create a {FOLDER} folder here ({why}){lost}")


def _make_unique(base: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    while True:
        path = os.path.join(base, f"{stamp}-{os.urandom(2).hex()}")
        try:
            os.mkdir(path, 0o700)
            return path
        except FileExistsError:
            continue


def _make_elsewhere() -> str:
    """A temporary folder; empty where even that fails: the run goes on, and nothing of it is saved."""
    import tempfile

    try:
        return tempfile.mkdtemp(prefix="unstuck-run-")
    except OSError:
        return ""
