"""The supervisor as a helper process beside a training it did not start (`unstuck.watch()`).

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
from unstuck.supervise.clock import TICK
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.options import Options
from unstuck.supervise.voice import Voice
from unstuck.supervise.watch import Watch


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="unstuck.supervise.beside", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("folder")
    parser.add_argument("--stall-after", type=float)
    parser.add_argument("--report")
    args = parser.parse_args(argv)
    options = Options(stall_after=args.stall_after, report=args.report)
    watch = Watch(args.pid, _command(args.pid), options, FlightFolder(args.folder), inferred=True)
    folder = store.create()
    try:
        _until_ended(watch, folder)
        _finish(watch, folder)
    finally:
        watch.hangar.close()
    return 0


def _until_ended(watch: Watch, folder: store.RunFolder) -> None:
    voice = Voice()
    while _alive(watch.root):
        closed, _, _ = select.select([0], [], [], TICK)
        if closed and not os.read(0, 1024):
            return
        try:
            news = watch.tick(time.monotonic())
            for line in watch.lost(time.monotonic()):
                voice.line(line)
        except Exception as fault:
            voice.line(f"watching is off after a fault of ours ({type(fault).__name__}: {fault})")
            return
        if news:
            diagnosis = _save(watch, folder, "running")
            voice.findings(watch.inquiry.case(), diagnosis)
            voice.next_command(f"unstuck report {folder.name}")


def _finish(watch: Watch, folder: store.RunFolder) -> None:
    from unstuck.model import Exit
    from unstuck.observer.flights import read_records
    from unstuck.recorder import layout as at
    from unstuck.recorder.records.deaths import Died

    watch.hangar.scan()
    gauge = watch.hangar.gauge_of(watch.root)
    ended = gauge is not None and bool(gauge.words[at.W_ENDED])
    failed = gauge is not None and any(isinstance(record, Died) for record in read_records(gauge))
    if not failed and (ended or _alive(watch.root)):
        if watch.inquired:
            watch.inquiry.withdraw_disproved()  # it came to the end of the watch by itself
        if watch.inquired or watch.options.report:
            _save(watch, folder, "finished")
        return
    exits = (Exit(watch.root, inferred=True),)
    news = watch.inquiry.explain_death(exits)
    diagnosis = _save(watch, folder, "died")
    if news:
        voice = Voice()
        voice.findings(watch.inquiry.case("died", exits), diagnosis)
        voice.next_command(f"unstuck report {folder.name}")


def _save(watch: Watch, folder: store.RunFolder, outcome: str):  # type: ignore[no-untyped-def]
    from unstuck.report.json_report import write_report
    from unstuck.rules.diagnose import Diagnosis

    case, diagnosis = watch.inquiry.last_case(outcome, ()), Diagnosis(watch.inquiry.findings)  # type: ignore[arg-type]
    try:
        folder.save(case, diagnosis)
        if watch.options.report:
            write_report(watch.options.report, case, diagnosis)
    except OSError as error:
        watch.off("run folder", error)
    return diagnosis


def _alive(pid: int) -> bool:
    return stat_fields(pid)[:1] not in ([], [b"Z"], [b"X"])


def _command(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(word.decode(errors="replace") for word in file.read().split(b"\0")[:-1])
    except OSError:
        return ()


if __name__ == "__main__":
    sys.exit(main())
