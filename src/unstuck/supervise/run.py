"""The supervisor's loop: start, tick, pass signals on, and end as the child ended."""

from __future__ import annotations

import os
import signal
import sys
import time

from unstuck.families import IN_VAIN
from unstuck.supervise import child, flight_folder
from unstuck.supervise.clock import TICK
from unstuck.supervise.options import Options
from unstuck.supervise.relay import Relay
from unstuck.supervise.voice import STATUS_AFTER, Voice
from unstuck.supervise.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unstuck.model import Exit, Finding, Outcome
    from unstuck.report.store import RunFolder
    from unstuck.rules.diagnose import Diagnosis
    from unstuck.supervise.stop import Stopper

STOPPED_BY_US = 3
FINDING_STANDS = 4
LAST_WORDS = 3.0
"""Seconds after Ctrl-C in which the run may end before it is explained."""
GLANCE = 0.05
"""Seconds between two readings while the status line is shown."""


class Supervisor:
    """One run from start to end. A fault in watching leaves the waiting and forwarding, nothing more."""

    def __init__(self, command: Sequence[str], options: Options, folder: RunFolder, voice: Voice | None = None) -> None:
        self.command, self.options, self.folder = tuple(command), options, folder
        self.voice = voice or Voice()
        self.relay = Relay()
        self.stopper: Stopper | None = None
        self.got: int | None = None

    def run(self) -> int:
        """Start the child and stay until it has ended; gives the exit code for ours, or ends as the child did."""
        place, why = flight_folder.make_folder()
        flights = flight_folder.FlightFolder(place)
        self.relay.begin()
        try:
            env = child.environment(place, trace_nan=self.options.trace_nan)
            self.process = child.start(self.command, env, old_mask=self.relay.old_mask, detach=self.options.detach)
            self.watch = Watch(self.process.pid, self.command, self.options, flights, stdin=stdin_kind())
            if place is None:
                self.watch.probes_off["recorder"] = f"no flight files: {why}"
                self.voice.line(f"recording is off ({why}); set TMPDIR to a local folder with room")
            if self.folder.note:
                kept = f"; this run is kept in {self.folder.path}" if self.folder.path else ""
                self.voice.line(self.folder.note + kept)
            self._until_ended()
            code = self._close()
        finally:
            flights.close()
            self.relay.end()
        return child.die_like(-code) if code < 0 else code

    # --- while it runs -----------------------------------------------------------------------------------

    def _until_ended(self) -> None:
        """Whatever goes wrong in between: waiting, and passing signals on, remain."""
        try:
            self._attend()
        except Exception as fault:
            self._fault("supervisor", fault)
            while self.process.poll() is None:
                info = self.relay.wait(TICK)
                if info is not None and info.si_signo != signal.SIGCHLD:
                    self.relay.forward(info, self.process.pid, lambda: False)

    def _attend(self) -> None:
        next_tick = time.monotonic() + TICK
        while self.process.poll() is None:
            shown = self.voice.showing
            info = self.relay.wait(min(next_tick - time.monotonic(), GLANCE if shown else TICK))
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._signalled(info)
            if shown and self.watch.moved:
                self.voice.status(None, None)  # before the script, which is about to print, gets to it
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + TICK
                self._part("supervisor", self._tick, now)
                if self.stopper is not None:
                    self.stopper.tick(now)

    def _tick(self, now: float) -> None:
        if self.watch.tick(now) and not self.watch.interrupted:
            self._tell()
        if self.watch.interrupted and now >= self.watch.interrupted_at + LAST_WORDS:
            self._part("last words", self._explain)  # it was asked to end and does not: then say it now
        self._part("unrecorded", self._tell_lost, now)
        self._part("status line", self._show_status)
        self._stop_if_asked()

    def _tell_lost(self, now: float) -> None:
        for line in self.watch.lost(now):
            self.voice.line(line)

    def _stop_if_asked(self) -> None:
        reason = self._reason_to_stop() if self.stopper is None else None
        if reason is None or self.process.poll() is not None:
            return
        option, finding = reason
        if finding.family in IN_VAIN and self._at_its_end(finding):
            return
        self.voice.line(f"stopping the run ({option})")
        self.watch.ending = True
        from unstuck.supervise.stop import Stopper

        self.stopper = Stopper(self.process.pid, self.options.grace, self._tree)

    def _at_its_end(self, finding: Finding) -> bool:
        """It was told to end, or has come to its end by itself: a run that moves needs no more than that."""
        gauge = self.watch.hangar.gauge_of(finding.where.pid or self.process.pid)
        return self.watch.interrupted or gauge is None or not gauge.trains

    def _reason_to_stop(self) -> tuple[str, Finding] | None:
        """The option and the standing finding by which the run is to be ended."""
        on_hang, stop_on = self.options.on_hang == "stop", self.options.stop_on
        standing = [f for f in self._findings() if not f.withdrawn]
        for finding in standing:
            if on_hang and finding.severity == "error" and finding.family not in IN_VAIN:
                return "--on-hang stop", finding
        for finding in standing:
            warned = finding.severity == "warning" and finding.family != "hang"  # of a hang only what is certain
            if (stop_on and finding.severity == "error") or (stop_on == "warning" and warned):
                return f"--stop-on {stop_on}", finding
        return None

    def _hopeless(self) -> bool:
        return any(f.severity == "error" and not f.withdrawn for f in self._findings())

    def _findings(self) -> tuple[Finding, ...]:
        return self.watch.inquiry.findings if self.watch.inquired else ()

    def _told(self) -> bool:
        """Something was found that is worth reading now."""
        if not self._findings():
            return False
        from unstuck.supervise.inquiry import is_quiet

        return not all(map(is_quiet, self._findings()))

    def _tell(self) -> None:
        self._save()
        self._show("running", stopping=self._reason_to_stop() is not None)

    def _show(self, outcome: Outcome, exits: tuple[Exit, ...] = (), *, stopping: bool = False) -> None:
        try:
            self.voice.findings(self.watch.inquiry.case(outcome, exits), self._diagnosis(), stopping=stopping)
        except Exception as fault:
            self._fault("terminal", fault)
            for finding in self._findings():  # without the drawing, but not unsaid
                self.voice.line(f"{finding.title} [{finding.rule}]")

    def _show_status(self) -> None:
        stall = case = None
        wanted = self.voice.on_terminal and self.watch.inquired and not self.watch.interrupted
        if wanted and not self._hopeless() and not self.watch.inquiry.at_prompt:
            stall = next((s for s in self.watch.inquiry.stalls() if s.standing >= STATUS_AFTER), None)
            case = self.watch.inquiry.case() if stall is not None else None
        self.voice.status(stall, case)

    def _signalled(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.got = number
            self._part("senders", self._note_sender, info)
            self._part("interrupt", self.watch.interrupt)
        if self.relay.forward(info, self.process.pid, lambda: self._has_receipt(number)):
            receipts = self.watch.receipts  # of this one; there may be more by now, of those still on their way to us
            receipts[number] = receipts.get(number, 0) + 1

    def _note_sender(self, info: signal.struct_siginfo) -> None:
        from unstuck.supervise.ending import sender

        known = info.si_pid if info.si_code <= 0 else 0  # else it came from the kernel: a key, or a closed terminal
        self.watch.senders.append(sender(info.si_signo, known, info.si_uid, time.monotonic()))

    def _has_receipt(self, number: int) -> bool:
        """The child got this signal since the last one we know of: it handled it, or is gone."""
        if self.process.poll() is not None:
            return True
        if self.watch.hangar.gauge_of(self.process.pid) is None:
            self.watch.hangar.scan()  # it came before the first tick
        gauge = self.watch.hangar.gauge_of(self.process.pid)
        return gauge is not None and gauge.heard().get(number, 0) > self.watch.receipts.get(number, 0)

    def _part(self, probe: str, action: Callable[..., object], *arguments: object) -> None:
        """One part of what we do: a fault of ours ends this part, never the run."""
        if probe in self.watch.probes_off:
            return
        try:
            action(*arguments)
        except Exception as fault:
            self._fault(probe, fault)

    def _fault(self, probe: str, fault: Exception) -> None:
        if probe in self.watch.probes_off:
            return
        self.watch.off(probe, fault)
        what = "watching" if probe == "supervisor" else f"a part of it ({probe})"
        self.voice.line(f"{what} is off after a fault of ours ({type(fault).__name__}: {fault}); the run goes on")
        if self.options.verbose:
            import traceback

            traceback.print_exc()

    def _tree(self) -> list[int]:
        try:
            from unstuck.observer.tree import descendants

            return descendants(self.process.pid)
        except Exception as fault:
            self.watch.off("process tree", fault)
            return []

    # --- at the end --------------------------------------------------------------------------------------

    def _close(self) -> int:
        """Say and save what is left to say; gives the exit code, negative for a signal."""
        code = self.process.returncode or 0
        if self.stopper is not None:
            self._part("stop", self.stopper.end_tree)
        self._part("strain", self.watch.starving.close)
        self._part("flight files", self.watch.hangar.scan)
        if self.watch.interrupted:
            self._part("last words", self._explain)
        self.voice.status(None, None)
        self._part("end", self._finish, code)
        if "end" in self.watch.probes_off:
            self._part("run folder", self._save_plain, code)
        if self.stopper is not None:
            self._sum_up()
        if self._told() and "run folder" not in self.watch.probes_off:
            self.voice.next_command(f"unstuck report {self.folder.name}")
        if self.stopper is not None:
            return STOPPED_BY_US
        if code == 0 and self.options.fail_on and self._fails():
            return FINDING_STANDS
        return code

    def _sum_up(self) -> None:
        """In a line, once more: the training's own last words have pushed the page up the screen."""
        reason = self._reason_to_stop()
        if reason is not None:
            cause = reason[1]
            where = f"{os.path.basename(cause.where.file)}:{cause.where.line}" if cause.where.file else ""
            told = f" ({where})" if where and where not in cause.title else ""
            self.voice.line(f"stopped, because {cause.title}{told} [{cause.rule}]")

    def _explain(self) -> None:
        known = self.watch.inquired or self.watch.hangar.news
        if self.stopper is None and known and self.watch.inquiry.explain_interrupt():
            self._show("interrupted")

    def _finish(self, code: int) -> None:
        by_itself = code == 0 and self.stopper is None and not self.watch.interrupted
        if by_itself and self.watch.inquired and self.watch.inquiry.withdraw_disproved():
            self.voice.line(
                "it moved on by itself and came to its end; what was said about standing still is withdrawn"
            )
        outcome = self._outcome(code)
        if outcome == "died":
            self._part("death", self._explain_death, code)
        elif outcome == "interrupted" and self.got in (signal.SIGTERM, signal.SIGHUP):
            self._part("death", self._explain_end, code)
        elif outcome == "finished" and (self.watch.trend.close() or self.watch.hangar.news):
            self._part("last facts", self._explain_finish)
        if self._findings() or self.options.report is not None:
            self._save(outcome, self._exits(code))
        else:
            self._save_plain(code)

    def _explain_death(self, code: int) -> None:
        if self.watch.inquiry.explain_death(self._exits(code)):
            self._show("died", self._exits(code))

    def _explain_finish(self) -> None:
        if self.watch.inquiry.think("finished"):
            self._show("finished")

    def _explain_end(self, code: int) -> None:
        if self.watch.inquiry.explain_end(self._exits(code)):
            self._show("interrupted", self._exits(code))

    def _exits(self, code: int) -> tuple[Exit, ...]:
        from unstuck.model import Exit

        return (Exit(self.process.pid, *ended(code), self.watch.inferred),)

    def _save_plain(self, code: int) -> None:
        """Nothing was found: the flight files and how it ended are enough, and cost next to nothing."""
        exit_code, number = ended(code)
        run: dict[str, object] = {
            "command": self.command,
            "pid": self.process.pid,
            "outcome": self._outcome(code),
            "exit_code": exit_code,
            "signal": number,
            "seconds": round(time.monotonic() - self.watch.began, 3),
            "probes_off": {**dict(self.watch.hangar.probes_off()), **self.watch.probes_off},
        }
        self._keep("run folder", self.folder.path, lambda: self.folder.save_plain(run), self._keep_flights)

    def _outcome(self, code: int) -> Outcome:
        if self.stopper is not None:
            return "stopped"
        if code == 0:
            return "finished"
        return "interrupted" if self.watch.interrupted else "died"

    def _fails(self) -> bool:
        loud = ("error",) if self.options.fail_on == "error" else ("error", "warning")
        return any(f.severity in loud and not f.withdrawn for f in self._findings())

    def _diagnosis(self) -> Diagnosis:
        from unstuck.rules.diagnose import Diagnosis

        return Diagnosis(self._findings(), self.watch.inquiry.questions if self.watch.inquired else ())

    def _save(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> None:
        """Write the Case and the report as they stand; a full disk costs the report, not the run."""
        from unstuck.report.json_report import write_report

        case, diagnosis = self.watch.inquiry.last_case(outcome, exits), self._diagnosis()
        if not self._keep(
            "run folder", self.folder.path, lambda: self.folder.save(case, diagnosis), self._keep_flights
        ):
            case = self.watch.inquiry.last_case(outcome, exits)  # which now says so
        report = self.options.report
        if report is not None:
            self._keep("report", report, lambda: write_report(report, case, diagnosis))

    def _keep_flights(self) -> None:
        self.watch.hangar.keep_copy(os.path.join(self.folder.path, "flight"))

    def _keep(self, probe: str, place: str, *writes: Callable[[], None]) -> bool:
        """Write something; a full disk, or a fault of ours, is said once and costs no more than that."""
        try:
            for write in writes:
                write()
            return True
        except Exception as error:
            if probe not in self.watch.probes_off:
                why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                self.voice.line(f"the {probe} could not be written to {place}: {why}")
            self.watch.off(probe, error)
            return False


def ended(code: int) -> tuple[int | None, int | None]:
    """Exit code and signal, one of them None."""
    return (code, None) if code >= 0 else (None, -code)


def stdin_kind() -> str:
    """What standard input is, for rules about waiting on it."""
    import stat

    try:
        if os.isatty(0):
            return "terminal"
        mode = os.fstat(0).st_mode
    except OSError:
        return "closed"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "pipe"
    return "null" if stat.S_ISCHR(mode) else "file"


def supervise(command: Sequence[str], options: Options, folder: RunFolder) -> int:
    if not sys.platform.startswith("linux"):
        import subprocess

        return subprocess.call(command)
    return Supervisor(command, options, folder).run()
