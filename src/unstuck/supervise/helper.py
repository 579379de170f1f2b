"""The supervisor as a helper process of a training it did not start (`unstuck.watch()`).

Started with the pid and the flight folder; ends when the process ends or closes our standard input. How the
process ended can then only be inferred.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import time

from unstuck.observer.gauge import stat_fields
from unstuck.report import store
from unstuck.supervise import Options
from unstuck.supervise.clock import TICK
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.output import Output
from unstuck.supervise.watch import Watch


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="unstuck.supervise.helper", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("folder")
    parser.add_argument("--stall-after", type=float)
    parser.add_argument("--report")
    args = parser.parse_args(argv)
    options = Options(stall_after=args.stall_after, report=args.report)
    flights = FlightFolder(args.folder)
    watch = Watch(args.pid, _command(args.pid), options, flights, store.create(), Output())
    try:
        _until_ended(watch)
        watch.parts.attempt("end", _finish, watch)
    finally:
        flights.close()
    return 0


def _until_ended(watch: Watch) -> None:
    while _is_alive(watch.root) and "supervisor" not in watch.parts:
        closed, _, _ = select.select([0], [], [], TICK)
        if closed and not os.read(0, 1024):
            return
        watch.parts.attempt("supervisor", _tick, watch)


def _tick(watch: Watch) -> None:
    if watch.tick(time.monotonic()):
        watch.tell()
        watch.output.next_command(f"unstuck report {watch.folder.name}")


def _finish(watch: Watch) -> None:
    from unstuck.model import Exit
    from unstuck.observer.journals import read_records
    from unstuck.recorder import layout as at
    from unstuck.recorder.records.deaths import Died

    watch.readings.scan()
    gauge = watch.readings.flights.gauge_of(watch.root)
    ended = gauge is not None and bool(gauge.words[at.W_ENDED])
    failed = gauge is not None and any(isinstance(record, Died) for record in read_records(gauge))
    if not failed and (ended or _is_alive(watch.root)):
        if watch.verdicts is not None:
            watch.verdicts.ended_well()  # it came to the end of the watch by itself
            watch.annotate("finished")
        if watch.gathered or watch.options.report:
            watch.save("finished")
        return
    exits = (Exit(watch.root, inferred=True),)
    shown = watch.explain_end("died", exits)
    watch.save("died", exits)
    watch.annotate("died", exits)
    if shown:
        watch.output.next_command(f"unstuck report {watch.folder.name}")


def _is_alive(pid: int) -> bool:
    return stat_fields(pid)[:1] not in ([], [b"Z"], [b"X"])


def _command(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(word.decode(errors="replace") for word in file.read().split(b"\0")[:-1])
    except OSError:
        return ()


if __name__ == "__main__":
    sys.exit(main())
