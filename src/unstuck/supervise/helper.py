"""The supervisor as a helper process of a training it did not start (`unstuck.watch()`).

Started with the pid and the flight folder; ends when the process ends, or writes to our standard input or closes it.
How the process ended can then only be inferred.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import select
import signal
import sys
import time

from unstuck.families import STANDING
from unstuck.observer import proc
from unstuck.report import store
from unstuck.supervise import Options
from unstuck.supervise.clock import TICK
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.output import Output
from unstuck.supervise.watch import Watch

WOKEN_SECONDS = 5.0  # after which a process that does not wake up cannot: then it is said here
LAST_SECONDS = 2.0  # that the watched process gets to take in what was found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="unstuck.supervise.helper", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("folder")
    parser.add_argument("--stall-after", type=float)
    parser.add_argument("--report")
    parser.add_argument("--says", action="store_true", help="write findings to standard output, a line each time")
    parser.add_argument("--wake", type=int, default=0, help="signal to send when it is certainly stuck")
    args = parser.parse_args(argv)
    options = Options(stall_after=args.stall_after, report=args.report)
    flights = FlightFolder(args.folder)
    output = Output(io.StringIO() if args.wake else None)  # who can be woken says it itself
    watch = Watch(args.pid, proc.command(args.pid), options, flights, store.create(), output)
    helper = Helper(watch, Saying() if args.says else None, args.wake)
    try:
        helper.run()
    finally:
        flights.close()
    return 0


class Saying:
    """Findings for the process that is watched, as JSON lines on standard output; never waits for it."""

    def __init__(self) -> None:
        os.set_blocking(1, False)
        self._waiting = b""
        self._shown: set[tuple[object, ...]] = set()

    def say(self, watch: Watch) -> None:
        from unstuck.report.cell_page import cell_page
        from unstuck.serial import to_plain
        from unstuck.supervise.verdicts import is_quiet

        told = [finding for finding in watch.findings if not is_quiet(finding) or finding.withdrawn]
        fresh = {(f.rule, f.where.pid, f.severity, f.withdrawn): f for f in told}
        page = cell_page([f for key, f in fresh.items() if key not in self._shown], watch.evidence.case())
        self._shown |= fresh.keys()
        line = {"findings": [to_plain(finding) for finding in told], "html": page}
        self._waiting += json.dumps(line).encode() + b"\n"
        self.send()

    def send(self) -> None:
        try:
            self._waiting = self._waiting[os.write(1, self._waiting) if self._waiting else 0 :]
        except BlockingIOError:
            pass  # it has not read the last ones yet
        except OSError:
            self._waiting = b""  # nobody reads any more

    def close(self) -> None:
        until = time.monotonic() + LAST_SECONDS
        while self._waiting and time.monotonic() < until:
            select.select([], [1], [], TICK)
            self.send()


class Helper:
    """The loop of `unstuck.watch()`."""

    def __init__(self, watch: Watch, saying: Saying | None, wake: int) -> None:
        self.watch, self.saying, self._wake = watch, saying, wake
        self._woken_at: float | None = None
        self._interrupts = 0
        """Times that the process was interrupted (Ctrl-C, a notebook's stop button), as far as known."""

    def run(self) -> None:
        self._until_ended()
        self.watch.parts.attempt("end", self._finish)
        if self.saying is not None:
            self.saying.close()

    def _until_ended(self) -> None:
        watch = self.watch
        while proc.alive(watch.root) and "supervisor" not in watch.parts:
            over, _, _ = select.select([0], [], [], TICK)
            if over:  # a byte, or closed
                return
            watch.parts.attempt("supervisor", self._tick)

    def _tick(self) -> None:
        watch = self.watch
        interrupts = self._heard_interrupts()
        if interrupts > self._interrupts:
            self._interrupts = interrupts
            watch.parts.attempt("interrupt", self._explain_interrupt)
        if watch.tick(time.monotonic()):
            watch.tell()
            watch.output.next_command(f"unstuck report {watch.folder.name}")
            self._say()
        elif self.saying is not None:
            self.saying.send()
        if self._woken_at is not None and time.monotonic() > self._woken_at + WOKEN_SECONDS:
            self._woken_at = None
            assert isinstance(watch.output.stream, io.StringIO)
            Output().text(watch.output.stream.getvalue())

    def _say(self) -> None:
        if self.saying is not None:
            self.saying.say(self.watch)
        stuck = any(f.severity == "error" and f.family in (*STANDING, "loop") for f in self.watch.findings)
        if self._wake and stuck and proc.alive(self.watch.root):
            os.kill(self.watch.root, self._wake)
            self._wake, self._woken_at = 0, time.monotonic()

    def _heard_interrupts(self) -> int:
        gauge = self.watch.readings.flights.gauge_of(self.watch.root)
        return 0 if gauge is None else gauge.heard().get(signal.SIGINT, 0)

    def _explain_interrupt(self) -> None:
        """A person stopped what ran, and may go on with something else: what was said of it stays as it is, and what
        comes next is judged for itself."""
        watch = self.watch
        watch.interrupt()
        told = len(watch.findings)
        watch.explain_interrupt()
        if len(watch.findings) > told:
            self._say()
        if watch.findings:
            watch.save("interrupted")
        watch.begin_anew()

    def _finish(self) -> None:
        from unstuck.model import Exit
        from unstuck.observer.journals import read_records
        from unstuck.recorder import layout as at
        from unstuck.recorder.records.deaths import Died

        watch = self.watch
        watch.readings.scan()
        gauge = watch.readings.flights.gauge_of(watch.root)
        ended = gauge is not None and bool(gauge.words[at.W_ENDED])
        failed = gauge is not None and any(isinstance(record, Died) for record in read_records(gauge))
        if not failed and (ended or proc.alive(watch.root)):
            if watch.verdicts is not None:
                watch.verdicts.ended_well()  # it came to the end of the watch by itself
            shown = watch.readings.flights.news > 0 and watch.explain_end("finished", ())
            if watch.gathered or watch.options.report:
                watch.save("finished")
            watch.publish("finished")
        else:
            exits = (Exit(watch.root, inferred=True),)
            shown = watch.explain_end("died", exits)
            watch.save("died", exits)
            watch.publish("died", exits)
        if shown:
            watch.output.next_command(f"unstuck report {watch.folder.name}")
        if watch.findings:
            self._say()


if __name__ == "__main__":
    sys.exit(main())
