"""The supervisor's loop: start, tick, pass signals on, and end as the child ended."""

from __future__ import annotations

import os
import signal
import time

from unstuck.families import IN_VAIN, STANDING
from unstuck.supervise import Options, child, flight_folder
from unstuck.supervise.clock import TICK
from unstuck.supervise.output import STATUS_AFTER, Output
from unstuck.supervise.relay import Relay
from unstuck.supervise.watch import Watch
from unstuck.text import spot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unstuck.model import Exit, Finding, Outcome
    from unstuck.report.store import RunFolder
    from unstuck.supervise.live import Live
    from unstuck.supervise.restart import Ending
    from unstuck.supervise.stop import Stopper

STOPPED_BY_US = 3  # exit codes
FINDING_STANDS = 4
LAST_WORDS_SECONDS = 3.0  # after Ctrl-C the run may end by itself for so long before it is explained
QUARANTINE = "bad.jsonl"  # in the run folder: what --on-hang heal left out
HUNG_SECONDS = 60.0  # that a sample may take with --on-hang heal, unless --stall-after says otherwise
STATUS_READ_SECONDS = 0.05  # between two readings while the status line is shown


class Supervisor:
    """One run from start to end. An internal error leaves the waiting and forwarding of signals, nothing more."""

    def __init__(
        self, command: Sequence[str], options: Options, folder: RunFolder, output: Output | None = None
    ) -> None:
        self.command, self.options, self.folder = tuple(command), options, folder
        self.output = output or Output()
        self.relay = Relay()
        self.stopper: Stopper | None = None
        self.live: Live | None = None
        self._ended_by: int | None = None
        """The last signal that reached us and means that the run has to end."""
        self._receipts: dict[int, int] = {}
        """How often the child had handled each signal, when last read."""
        self.ending: Ending | None = None
        """How it ended, if not well: `--restart` asks."""

    def run(self) -> int:
        """Start the child and stay until it has ended; gives the exit code for ours, negative for a signal."""
        place, why = flight_folder.make_folder()
        flights = flight_folder.FlightFolder(place)
        self.relay.begin()
        try:
            env = child.environment(place, trace_nan=self.options.trace_nan, heal=self._heal())
            self.process = child.start(self.command, env, old_mask=self.relay.old_mask, detach=self.options.detach)
            self.watch = Watch(self.process.pid, self.command, self.options, flights, self.folder, self.output)
            self.parts = self.watch.parts
            if place is None:
                self.parts["recorder"] = f"no flight files: {why}"
                self.output.line(f"recording is off ({why}); set TMPDIR to a local folder with free space")
            if self.folder.note:
                kept = f"; this run is saved in {self.folder.path}" if self.folder.path else ""
                self.output.line(self.folder.note + kept)
            if self.options.live:
                self.parts.attempt("live page", self._go_live)
            self._until_ended()
            code = self._close()
            if self.options.restart:
                from unstuck.supervise.restart import ending_of

                self.ending = ending_of(self, code)
        finally:
            if self.live is not None:
                self.live.close()
            flights.close()
            if self.relay.end():
                self.ending = None  # and it is not started again
        return code

    def _go_live(self) -> None:
        """After the child was started: it gets none of the server's threads and sockets."""
        from unstuck.supervise.live import Live

        self.live = Live()
        self.output.line(f"live page, on this machine only, until the run ends: {self.live.address}")

    def _heal(self) -> dict[str, object] | None:
        """What the script's own loaders are to do about bad samples (--on-hang heal)."""
        if self.options.on_hang != "heal":
            return None
        place = os.path.abspath(os.path.join(self.folder.path or ".", QUARANTINE))
        self.output.line(
            f"DataLoaders leave out samples that raise, hang or kill their worker, and list them in {place}"
        )
        return {"quarantine": place, "sample_timeout": self.options.stall_after or HUNG_SECONDS}

    # --- while it runs -----------------------------------------------------------------------------------

    def _until_ended(self) -> None:
        """Whatever goes wrong in between: waiting, and passing signals on, remain."""
        try:
            self._loop()
        except Exception as error:
            self.parts.fail("supervisor", error)
            while self.process.poll() is None:
                info = self.relay.wait(TICK)
                if info is not None and info.si_signo != signal.SIGCHLD:
                    self.relay.forward(info, self.process.pid, lambda: False)

    def _loop(self) -> None:
        next_tick = time.monotonic() + TICK
        while self.process.poll() is None:
            shown = self.output.showing
            info = self.relay.wait(min(next_tick - time.monotonic(), STATUS_READ_SECONDS if shown else TICK))
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._signalled(info)
            if shown and self.watch.readings.moved:
                self.output.status(None, None)  # before the script, which is about to print, gets to it
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + TICK
                self.parts.attempt("supervisor", self._tick, now)
                if self.stopper is not None:
                    self.stopper.tick(now)

    def _tick(self, now: float) -> None:
        worth_saying = self.watch.tick(now)
        self._note_receipts()
        if worth_saying:
            self.watch.tell(stopping=self._reason_to_stop() is not None)
        interrupted_at = self.watch.readings.interrupted_at
        if interrupted_at is not None and now >= interrupted_at + LAST_WORDS_SECONDS:
            self.parts.attempt("last words", self._explain_interrupt)  # it had to end and does not: then say it now
        self.parts.attempt("status line", self._show_status)
        if self.live is not None and self.live.wanted(now):
            self.parts.attempt("live page", lambda live: live.publish(self.watch.view()), self.live)
        self._stop_if_wanted()

    def _show_status(self) -> None:
        stall = case = None
        wanted = self.output.on_terminal and self.watch.gathered and not self.watch.interrupted
        certain = any(finding.severity == "error" for finding in self.watch.findings)
        if wanted and not certain and not self.watch.evidence.at_prompt:
            stalls = self.watch.evidence.stalls()
            stall = next((stall for stall in stalls if stall.standing >= STATUS_AFTER), None)
            case = self.watch.evidence.case() if stall is not None else None
        self.output.status(stall, case)

    # --- stopping it -------------------------------------------------------------------------------------

    def _reason_to_stop(self) -> tuple[str, Finding] | None:
        verdicts = self.watch.verdicts
        return verdicts.reason_to_stop(self.options) if verdicts is not None else None

    def _stop_if_wanted(self) -> None:
        reason = self._reason_to_stop() if self.stopper is None else None
        if reason is None or self.process.poll() is not None:
            return
        option, finding = reason
        if finding.family in IN_VAIN and self._is_at_its_end(finding):
            return
        self.output.line(f"stopping the run ({option})")
        self.watch.ending = True
        from unstuck.supervise.stop import Stopper

        self.stopper = Stopper(self.process.pid, self.options.grace)

    def _is_at_its_end(self, finding: Finding) -> bool:
        """It is ending, or has ended training by itself: a run that moves needs no more than that."""
        gauge = self.watch.readings.flights.gauge_of(finding.where.pid or self.process.pid)
        return self.watch.interrupted or gauge is None or not gauge.trains

    # --- signals -----------------------------------------------------------------------------------------

    def _signalled(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._ended_by = number
            self.parts.attempt("senders", self._note_sender, info)
            self.parts.attempt("interrupt", self.watch.interrupt)
        if number == signal.SIGTSTP:
            self.output.status(None, None)  # the screen is the shell's now
        if self.relay.forward(info, self.process.pid, lambda: self._has_receipt(number)):
            # Of this one; there may be more by now, of those still on their way to us.
            self._receipts[number] = self._receipts.get(number, 0) + 1

    def _note_sender(self, info: signal.struct_siginfo) -> None:
        from unstuck.supervise.relay import sender

        self.watch.readings.senders.append(sender(info))

    def _has_receipt(self, number: int) -> bool:
        """The child got this signal since the last one we know of: it handled it, or is gone."""
        if self.process.poll() is not None:
            return True
        flights = self.watch.readings.flights
        if flights.gauge_of(self.process.pid) is None:
            flights.scan()  # it came before the first tick
        gauge = flights.gauge_of(self.process.pid)
        return gauge is not None and gauge.heard().get(number, 0) > self._receipts.get(number, 0)

    def _note_receipts(self) -> None:
        gauge = self.watch.readings.flights.gauge_of(self.process.pid)
        heard = {} if gauge is None else gauge.heard()
        if not signal.sigpending() - {signal.SIGCHLD}:  # else the newest receipt may be of one not yet seen by us
            self._receipts = dict(heard)

    # --- at the end --------------------------------------------------------------------------------------

    def _close(self) -> int:
        """Say and save what is left to say; gives the exit code, negative for a signal."""
        code = self.process.returncode or 0
        if self.stopper is not None:
            self.parts.attempt("stop", self.stopper.end_tree)
        self.parts.attempt("batch makers", self.watch.readings.makers.close)
        self.parts.attempt("flight files", self.watch.readings.scan)
        if self.watch.interrupted:
            self.parts.attempt("last words", self._explain_interrupt)
        self.output.status(None, None)
        self.parts.attempt("end", self._finish, code)
        if "end" in self.parts:
            self.parts.attempt("run folder", self.watch.save_plain, self._outcome(code), *exit_of(code))
        if self.live is not None and self.live.version:  # somebody has looked
            self.parts.attempt("live page", self._publish_end, self.live, code)
        if self.stopper is not None:
            self._sum_up()
        verdicts = self.watch.verdicts
        if verdicts is not None and verdicts.worth_reading:
            self.parts.attempt("publishing", self.watch.publish, self._outcome(code), self._exits(code))
        if verdicts is not None and verdicts.worth_reading and "run folder" not in self.parts:
            self.output.next_command(f"unstuck report {self.folder.name}")
        elif self.options.verbose and not self.watch.findings:
            self.parts.attempt("summary", self._say_what_was_watched, code)
        if self.stopper is not None:
            return STOPPED_BY_US
        return FINDING_STANDS if code == 0 and verdicts is not None and verdicts.fails(self.options.fail_on) else code

    def _finish(self, code: int) -> None:
        watch, outcome = self.watch, self._outcome(code)
        if outcome == "finished" and not watch.interrupted and watch.verdicts is not None:
            families = {finding.family for finding in watch.verdicts.ended_well()}
            if families & STANDING:
                self.output.line("the run recovered; the hang report above no longer applies")
            elif families:
                self.output.line("the run finished; the report above that it would never end no longer applies")
        if self._end_says_something(outcome):
            self.parts.attempt("explaining the end", watch.explain_end, outcome, self._exits(code))
        if watch.findings or self.options.report is not None:
            watch.save(outcome, self._exits(code))
        else:
            watch.save_plain(outcome, *exit_of(code))

    def _publish_end(self, live: Live, code: int) -> None:
        live.publish(self.watch.view(self._outcome(code), self._exits(code)), ended=True)

    def _end_says_something(self, outcome: Outcome) -> bool:
        if outcome == "interrupted":
            return self._ended_by in (signal.SIGTERM, signal.SIGHUP)  # who sent the signal is worth a word
        readings = self.watch.readings
        return outcome == "died" or (outcome == "finished" and (readings.trend.close() or readings.flights.news > 0))

    def _explain_interrupt(self) -> None:
        if self.stopper is None:
            self.watch.explain_interrupt()

    def _exits(self, code: int) -> tuple[Exit, ...]:
        from unstuck.model import Exit

        return (Exit(self.process.pid, *exit_of(code)),)

    def _outcome(self, code: int) -> Outcome:
        if self.stopper is not None:
            return "stopped"
        if code == 0:
            return "finished"
        return "interrupted" if self.watch.interrupted else "died"

    def _say_what_was_watched(self, code: int) -> None:
        from unstuck.report.wording import watched

        self.output.line(watched(self.watch.evidence.case(self._outcome(code), self._exits(code))))
        if "run folder" not in self.parts:
            self.output.next_command(f"unstuck report {self.folder.name}")

    def _sum_up(self) -> None:
        """In one line, once more: the training's own last output has pushed the page up the screen."""
        reason = self._reason_to_stop()
        if reason is not None:
            cause = reason[1]
            where = spot(cause.where.file, cause.where.line) if cause.where.file and cause.where.line else ""
            shown = f" ({where})" if where and where not in cause.title else ""
            self.output.line(f"stopped the run: {cause.title}{shown} [{cause.rule}]")


def exit_of(code: int) -> tuple[int | None, int | None]:
    """Exit code and signal, one of them None."""
    return (code, None) if code >= 0 else (None, -code)


def supervise(command: Sequence[str], options: Options, new_folder: Callable[[], RunFolder]) -> int:
    """The whole of `run`: gives the exit code, or ends as the training did."""
    if options.restart:
        from unstuck.supervise.restart import run_again

        code = run_again(lambda folder: Supervisor(command, options, folder), options, new_folder)
    else:
        code = Supervisor(command, options, new_folder()).run()
    return child.die_like(-code) if code < 0 else code
