"""The supervisor's loop: start, tick, pass signals on, and end as the child ended."""

from __future__ import annotations

import os
import signal
import sys
import time

from unstuck.supervise import child, hangar
from unstuck.supervise.clock import TICK
from unstuck.supervise.options import Options
from unstuck.supervise.relay import Relay, pending
from unstuck.supervise.stop import Stopper
from unstuck.supervise.voice import STATUS_AFTER, Voice
from unstuck.supervise.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unstuck.model import Exit, Finding, Outcome
    from unstuck.rules.diagnose import Diagnosis
    from unstuck.store import RunFolder

STOPPED_BY_US = 3
FINDING_STANDS = 4


class Supervisor:
    """One run from start to end. A fault in watching leaves the waiting and forwarding, nothing more."""

    def __init__(self, command: Sequence[str], options: Options, folder: RunFolder, voice: Voice | None = None) -> None:
        self.command, self.options, self.folder = tuple(command), options, folder
        self.voice = voice or Voice()
        self.relay = Relay()
        self.watching = True
        self.stopper: Stopper | None = None
        self.got: int | None = None

    def run(self) -> int:
        """Start the child and stay until it has ended; gives the exit code for ours, or ends as the child did."""
        place, why = hangar.make_folder()
        flights = hangar.Hangar(place)
        self.relay.begin()
        try:
            env = child.environment(place)
            self.process = child.start(self.command, env, old_mask=self.relay.old_mask, detach=self.options.detach)
            self.watch = Watch(self.process.pid, self.command, self.options, flights, stdin=stdin_kind())
            if place is None:
                self.watch.probes_off["recorder"] = f"no flight files: {why}"
                self.voice.line(f"recording is off ({why}); set TMPDIR to a local folder with room")
            if self.folder.note:
                self.voice.line(f"{self.folder.note}; this run is kept in {self.folder.path}")
            self._until_ended()
            code = self._close()
        finally:
            flights.close()
            self.relay.end()
        return child.die_like(-code) if code < 0 else code

    # --- while it runs -----------------------------------------------------------------------------------

    def _until_ended(self) -> None:
        next_tick = time.monotonic() + TICK
        while self.process.poll() is None:
            info = self.relay.wait(next_tick - time.monotonic())
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._signalled(info)
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + TICK
                self._guarded(self._tick, now)
                if self.stopper is not None:
                    self.stopper.tick(now)

    def _tick(self, now: float) -> None:
        if self.watch.tick(now) and not self.watch.interrupted:
            self._tell()
        self._show_status()
        if self.options.on_hang == "stop" and self.stopper is None and self._hopeless():
            self.voice.line("stopping the run (--on-hang stop)")
            self.watch.ending = True
            self.stopper = Stopper(self.process.pid, self.options.grace, self._tree)

    def _hopeless(self) -> bool:
        return any(f.severity == "error" and not f.withdrawn for f in self._findings())

    def _findings(self) -> tuple[Finding, ...]:
        return self.watch.inquiry.findings if self.watch.inquired else ()

    def _tell(self) -> None:
        diagnosis = self._save()
        stopping = self.options.on_hang == "stop" and self._hopeless()
        self.voice.findings(self.watch.inquiry.case(), diagnosis, stopping=stopping)

    def _show_status(self) -> None:
        stall = case = None
        if self.voice.on_terminal and self.watch.inquired and not self.watch.interrupted and not self._hopeless():
            stall = next((s for s in self.watch.inquiry.stalls() if s.standing >= STATUS_AFTER), None)
            case = self.watch.inquiry.case() if stall is not None else None
        self.voice.status(stall, case)

    def _signalled(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.got = number
            self._guarded(self.watch.interrupt)
        before = self._receipts()
        self.relay.forward(info, self.process.pid, lambda: self._received(number, before))

    def _receipts(self) -> int:
        """Size of the stacks the root left on signals as we last knew it."""
        return self.watch.receipts if self.watching else 0

    def _received(self, number: int, before: int) -> bool:
        if self.process.poll() is not None or pending(self.process.pid, number):
            return True
        gauge = self.watch.hangar.gauge_of(self.process.pid)
        return gauge is not None and gauge.signalled() > before

    def _guarded(self, action: Callable[..., object], *arguments: object) -> None:
        """A fault of ours ends the watching, never the run."""
        if not self.watching:
            return
        try:
            action(*arguments)
        except Exception as fault:
            self.watching = False
            self.watch.off("supervisor", fault)
            self.voice.line(f"watching is off after a fault of ours ({type(fault).__name__}: {fault}); the run goes on")
            if self.options.verbose:
                import traceback

                traceback.print_exc()

    def _tree(self) -> list[int]:
        try:
            from unstuck.observe.tree import descendants

            return descendants(self.process.pid)
        except Exception as fault:
            self.watch.off("process tree", fault)
            return []

    # --- at the end --------------------------------------------------------------------------------------

    def _close(self) -> int:
        code = self.process.returncode or 0
        if self.stopper is not None:
            self.stopper.end_tree()
        self._guarded(self.watch.hangar.scan)
        if self.watch.interrupted and self.stopper is None and self.watch.inquired:
            self._guarded(self._explain)
        self.voice.status(None, None)
        self._guarded(self._finish, code)
        if self._findings():
            self.voice.next_command(f"unstuck report {self.folder.name}")
        if self.stopper is not None:
            return STOPPED_BY_US
        if code < 0:
            return child.die_like(-code)
        if code == 0 and self.options.fail_on and self._fails():
            return FINDING_STANDS
        return code

    def _explain(self) -> None:
        if self.watch.inquiry.explain_interrupt():
            self.voice.findings(self.watch.inquiry.case("interrupted"), self._diagnosis())

    def _finish(self, code: int) -> None:
        if self._findings() or self.options.report is not None:
            from unstuck.model import Exit

            self._save(self._outcome(code), (Exit(self.process.pid, *ended(code), self.watch.inferred),))
        else:
            self._save_plain(code)

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
            "probes_off": self.watch.probes_off,
        }
        try:
            self.folder.save_plain(run)
            self.watch.hangar.keep_copy(os.path.join(self.folder.path, "flight"))
        except OSError as error:
            self.watch.off("run folder", error)

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

        return Diagnosis(self._findings())

    def _save(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> Diagnosis:
        """Write the Case and the report as they stand; a full disk costs the report, not the run."""
        from unstuck.render.json_report import write_report

        case, diagnosis = self.watch.inquiry.case(outcome, exits), self._diagnosis()
        try:
            self.folder.save(case, diagnosis)
            self.watch.hangar.keep_copy(os.path.join(self.folder.path, "flight"))
        except OSError as error:
            self.watch.off("run folder", error)
        if self.options.report is not None:
            try:
                write_report(self.options.report, case, diagnosis)
            except OSError as error:
                self.watch.off("report", error)
                self.voice.line(f"the report could not be written to {self.options.report}: {error.strerror}")
        return diagnosis


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
