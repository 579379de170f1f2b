"""The place of one worker of a scan: its process, its tasks, and where it stands when it hangs."""

from __future__ import annotations

import multiprocessing
import os
from time import monotonic, sleep

from .. import user_code
from . import worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..records import Site
    from .plan import Plan

LOOKS = 8


class Place:
    """One worker, and the tasks whose results it has not handed over."""

    def __init__(self, plan: Plan, number: int, seed: int, folder: str) -> None:
        context = multiprocessing.get_context(plan.method)
        self.number, self.folder = number, folder
        self.pipe, theirs = context.Pipe()
        about = (plan, theirs, number, seed, folder, os.getpid())
        self.process: Any = context.Process(  # type: ignore[attr-defined]
            target=worker.work, args=about, daemon=True
        )
        self.process.start()
        theirs.close()
        self.tasks: dict[int, tuple[list[int], bool]] = {}
        self.asked = self.began = monotonic()
        self.ready = self.asked_to_tell = self.idle = False

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.close()

    def close(self) -> None:
        self.process.join(5)
        self.pipe.close()

    def spins(self) -> bool:
        """It wants the processor, each time it is looked at: on a crowded machine it need not have got it."""
        wants = 0
        for _ in range(LOOKS):
            try:
                with open(f"/proc/{self.process.pid}/stat", "rb") as file:
                    wants += file.read().rpartition(b")")[2].split()[0] == b"R"
            except OSError:
                return False
            sleep(0.03)
        return wants > LOOKS // 2

    def site(self) -> Site | None:
        """The innermost line of the user's, as the worker's own handler of faults writes it."""
        path = os.path.join(self.folder, f"scan-stack-{self.number}-{self.process.pid}")
        try:
            os.kill(self.process.pid, worker.SIGNAL)
            sleep(0.4)
            with open(path) as file:
                lines = file.read().splitlines()
        except OSError:
            return None
        found = [frame for line in lines if (frame := _frame(line)) is not None]
        return next((frame for frame in found if user_code.is_user_file(frame[0])), None)


def _frame(line: str) -> Site | None:
    """File "x.py", line 3 in f"""
    head, _, rest = line.strip().partition('", line ')
    number, _, function = rest.partition(" in ")
    return (head[6:], int(number), function) if head.startswith('File "') and number.isdigit() else None
