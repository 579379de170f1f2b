"""`run --restart N`: start the training again after it died or hung. The script resumes from its own checkpoint."""

from __future__ import annotations

import os
import time

from unstuck.supervise import Options
from unstuck.supervise.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstuck.report.store import RunFolder
    from unstuck.supervise.supervisor import Supervisor

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""Before a restart; it doubles from one to the next: what killed the run may need time to pass."""
HUNG = ("hang", "ranks")  # families of findings for which `--on-hang stop` ends a run that may go well another time


class Ending:
    """How a run ended that did not end well: "death" or "hang", its cause, and after how many of its steps."""

    def __init__(self, kind: str, cause: str, step: int) -> None:
        self.kind, self.cause, self.step = kind, cause, step


def ending_of(run: Supervisor, code: int) -> Ending | None:
    """None if it ended well, or as the user wanted."""
    finding = next((f for f in run.watch.findings if f.severity == "error" and not f.withdrawn), None)
    if run.watch.interrupted:
        return None
    if run.stopper is not None:
        if run.options.stop_on is not None or finding is None or finding.family not in HUNG:
            return None  # the rest of the families goes wrong again
        kind, cause = "hang", ""
    elif run.process.returncode:
        kind, cause = "death", f"exit code {code}" if code > 0 else f"signal {-code}"
    else:
        return None
    if finding is not None:
        where = finding.where
        spot = f" at {os.path.basename(where.file)}:{where.line}" if where.file else ""
        cause = f"{finding.rule}{spot}" + (f", sample {where.sample}" if where.sample is not None else "")
    return Ending(kind, cause, run.watch.readings.flights.steps)


class Restarts:
    """Which endings a run is started again after."""

    def __init__(self, options: Options) -> None:
        self._most, self._kinds = options.restart, options.restart_on.split(",")
        self._seen: set[tuple[str, str, int]] = set()
        self.used = 0

    def verdict(self, ending: Ending) -> tuple[float | None, str]:
        """Seconds to wait before the restart, None if there is none; and why, in words."""
        words = f"{ending.cause}, after {ending.step:,} steps"
        if ending.kind not in self._kinds:
            return None, f"not restarted after a {ending.kind} (--restart-on {','.join(self._kinds)})"
        key = (ending.kind, ending.cause, ending.step)
        if key in self._seen:
            return None, f"not restarted: the same cause for the second time at the same step ({words})"
        self._seen.add(key)
        if self.used >= self._most:
            return None, f"not restarted: all {self._most:,} restarts are used up ({words})"
        pause = min(FIRST_PAUSE_SECONDS * 2.0**self.used, LONGEST_PAUSE_SECONDS)
        self.used += 1
        return pause, f"restart {self.used:,} of {self._most:,} in {pause:.0f} s ({words})"


def run_again(start: Callable[[RunFolder], Supervisor], options: Options, new_folder: Callable[[], RunFolder]) -> int:
    """Run until it ends well or another start would not help; gives the last exit code, negative for a signal."""
    restarts, output = Restarts(options), Output()
    while True:
        run = start(new_folder())
        code = run.run()
        if run.ending is None:
            return code
        pause, why = restarts.verdict(run.ending)
        output.line(why)
        if pause is None:
            return code
        time.sleep(pause)
