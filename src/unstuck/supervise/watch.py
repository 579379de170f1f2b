"""A run under watch, by `unstuck run` or by `unstuck.watch()`: read, look, judge, print and save.

Light: evidence and verdicts are loaded at the first standstill, or the first record that may decide a rule.
"""

from __future__ import annotations

import os
import time
from functools import partial

from unstuck.families import STANDING
from unstuck.supervise.clock import SLOW_PACE, TICK
from unstuck.supervise.early_word import EarlyWord, cause_in_words
from unstuck.supervise.readings import PartsOff, Readings
from unstuck.supervise.unrecorded import Unrecorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from unstuck.model import Case, Exit, Finding, Outcome
    from unstuck.report.store import RunFolder
    from unstuck.rules.diagnose import Diagnosis
    from unstuck.supervise import Options
    from unstuck.supervise.evidence import Evidence
    from unstuck.supervise.flight_folder import FlightFolder
    from unstuck.supervise.output import Output
    from unstuck.supervise.verdicts import Verdicts

UNWINDING_SECONDS = 10.0  # a run that moves so long after Ctrl-C is taken to be ending


class Watch:
    """What both loops share. They call `tick`, and `tell` where that says so."""

    def __init__(
        self,
        root: int,
        command: tuple[str, ...],
        options: Options,
        flights: FlightFolder,
        folder: RunFolder,
        output: Output,
    ) -> None:
        self.root, self.command, self.options, self.folder, self.output = root, command, options, folder, output
        self.parts = PartsOff(output.line, verbose=options.verbose)
        self.readings = Readings(root, flights, options.stall_after, self.parts)
        self.unrecorded = Unrecorded(root, flights)
        self._early = EarlyWord(self.readings.clock.scale)
        self.ending = False
        """We are ending it: what moves now moves because of us."""
        self._evidence: Evidence | None = None
        self._shown: Evidence | None = None
        self.verdicts: Verdicts | None = None
        """None until the rules were applied."""

    @property
    def evidence(self) -> Evidence:
        if self._evidence is None:
            from unstuck.supervise.evidence import Evidence

            self._evidence = Evidence(self.readings, self.command, self.options.stall_after)
        return self._evidence

    @property
    def gathered(self) -> bool:
        """There is some evidence."""
        return self._evidence is not None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.verdicts.findings if self.verdicts is not None else ()

    @property
    def interrupted(self) -> bool:
        return self.readings.interrupted_at is not None

    # --- while it runs -----------------------------------------------------------------------------------

    def tick(self, now: float) -> bool:
        """Read the clock; look and judge if it is time. True if there is something new to say."""
        self.readings.tick(now)
        self._go_on_after_interrupt()
        if self.interrupted or self.ending:
            return False
        self.parts.attempt("unrecorded", self._tell_unrecorded, now)
        self.readings.measure(now)
        recovered = self._recovered()
        due = self._look_where_due()
        if not due and self.readings.take_news():  # after a look not now: the flights of that moment belong to it
            self.evidence.note_flights()
            due = True
        worth_saying = due and self.judge()
        if self.gathered:
            self.parts.attempt("early word", self._say_early, worth_saying or recovered)
        return worth_saying or recovered

    def _tell_unrecorded(self, now: float) -> None:
        for pid, line in self.unrecorded.tick(now).items():
            self.parts[f"recorder of process {pid}"] = line
            self.output.line(line)

    def _recovered(self) -> bool:
        """A standstill that was reported is over: the report is withdrawn, and that is worth saying."""
        withdrawn = self.verdicts.recovered(self.readings.last_moves()) if self.verdicts is not None else ()
        return any(finding.severity != "info" for finding in withdrawn)

    def _say_early(self, about_to_tell: bool) -> None:
        """Say in one line what stands still though nothing is proven, and take it back when it moves."""
        from unstuck.report.wording import doing, stalled_for
        from unstuck.text import seconds

        stalls = self.evidence.stalls()
        over = self._early.over(stalls)
        certain = about_to_tell or any(f.family in STANDING and f.severity != "info" for f in self.findings)
        if over is not None and not certain:
            stood = self.readings.last_moves().get(over.pid, over.since) - over.since
            self.output.line(f"moving again after {seconds(max(stood, over.standing))}")
        if certain or self.evidence.at_prompt:
            return
        stall = self._early.due(stalls)
        if stall is not None:
            case = self.evidence.case()
            why = self._why(case)
            if why is None:
                self._early.leave_unsaid()
                return
            why = why or ", ".join(doing(stall, case))
            self.output.line(f"{stalled_for(stall)}{': ' if why else ''}{why}; still watching")

    def _why(self, case: Case) -> str | None:
        from dataclasses import replace

        from unstuck.rules.diagnose import diagnose

        return cause_in_words(diagnose(replace(case, asked=True)).findings)

    def _look_where_due(self) -> bool:
        looked = False
        clock = self.readings.clock
        for pid in self.readings.clocked():
            hand = clock.hands.get(pid)
            if hand is None:
                continue
            p99 = self.readings.p99(pid)
            early = max(1.0, SLOW_PACE * p99 - 1.0)  # a second before the first look, for a Ctrl-C that comes before it
            if clock.wants_look(pid, p99):
                self.evidence.look(pid)
                looked = True
            elif hand.looks or early <= hand.standing < early + 2 * TICK:
                self.evidence.note_flights()
        return looked

    def judge(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> bool:
        """Apply the rules to the Case as it stands. True if they found something worth saying."""
        return self.parts.attempt("rules", self._judge, self.evidence.case(outcome, exits))

    def _judge(self, case: Case) -> bool:
        from unstuck.rules.diagnose import diagnose
        from unstuck.supervise.verdicts import Verdicts, is_quiet

        diagnosis = diagnose(case)
        for rule, why in diagnosis.probes_off:
            self.parts.setdefault(rule, why)
        self.verdicts = self.verdicts or Verdicts()
        return not all(map(is_quiet, self.verdicts.update(case, diagnosis, time.monotonic())))

    # --- Ctrl-C and death --------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ctrl-C or SIGTERM came: keep what is known of this very moment, before the tree unwinds."""
        now = time.monotonic()
        self.readings.note_steps(now)
        self.readings.interrupted_at = now
        hands = self.readings.clock.hands
        if self.gathered or any(hands[pid].standing >= 1.0 for pid in self.readings.clocked() if pid in hands):
            self.evidence.freeze()

    def _go_on_after_interrupt(self) -> None:
        """It had to end and trains on: the script handles the signal in its own way."""
        at, moves = self.readings.interrupted_at, self.readings.last_moves()
        if at is None or not any(moves.get(pid, 0.0) > at + UNWINDING_SECONDS for pid in self.readings.clocked()):
            return
        self.readings.interrupted_at = None
        if self.gathered:
            self.evidence.thaw()

    def begin_anew(self) -> None:
        """What ran was stopped, and the process lives on, as that of a notebook does: what follows is another run."""
        self.readings.interrupted_at = None
        self._evidence = self.verdicts = None

    def explain_interrupt(self) -> None:
        """Show what the interrupt ended: a standstill, or a run that moved and whose own records may say something."""
        news = bool(self.readings.flights.news)
        if news and not self.gathered:
            self.evidence.nothing_stood()
        if (self.gathered or news) and (self.evidence.of_the_interrupt() or news) and self.judge():
            self.show("interrupted")

    def explain_end(self, outcome: Outcome, exits: tuple[Exit, ...]) -> bool:
        """The run is over: what it left behind is the Case. True if something was found and shown."""
        if outcome == "died":
            self.evidence.note_flights()  # next to a notebook or under a launcher some still live
        worth_saying = self.judge(outcome, exits)
        if worth_saying:
            self.show(outcome, exits)
        return worth_saying

    # --- printing and saving -----------------------------------------------------------------------------

    def tell(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = (), *, stopping: bool = False) -> None:
        """Save everything, and show what was found."""
        self.save(outcome, exits)
        self.show(outcome, exits, stopping=stopping)

    def show(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = (), *, stopping: bool = False) -> None:
        try:
            self.output.findings(self.evidence.case(outcome, exits), self._diagnosis(), stopping=stopping)
        except Exception as error:
            self.parts.fail("terminal", error)
            for finding in self.findings:  # without the drawing, but not unsaid
                self.output.line(f"{finding.title} [{finding.rule}]")

    def publish(self, outcome: Outcome, exits: tuple[Exit, ...] = ()) -> None:
        """At the end, where people look anyway: next to the code in CI, and in the TensorBoard of the run."""
        from unstuck.report import github
        from unstuck.rules.diagnose import Diagnosis
        from unstuck.supervise.verdicts import is_quiet

        findings = tuple(finding for finding in self.findings if not finding.withdrawn and not is_quiet(finding))
        if not findings:
            return
        case, diagnosis, redact = self._case_to_keep(outcome, exits), Diagnosis(findings), self.options.redact
        files = self.evidence.case(outcome, exits).event_files  # at the end: a writer may open its file only then
        for folder in sorted({os.path.dirname(file.path) for file in files}):
            from unstuck.report.tensorboard import write_events

            self._write("TensorBoard", folder, partial(write_events, folder, case, diagnosis, redact=redact))
        if github.wanted(self.options.format):
            self.output.text(github.annotation_lines(findings, case, redact=redact))
            write = partial(github.write_summary, case, diagnosis, redact=redact)
            self._write("step summary", "GITHUB_STEP_SUMMARY", write)

    def save(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> None:
        """Write the Case and the report as they stand; a full disk costs the report, not the run."""
        from unstuck.report.report_file import write_report

        case, diagnosis, report = self._case_to_keep(outcome, exits), self._diagnosis(), self.options.report
        if not self._write("run folder", self.folder.path, lambda: self.folder.save(case, diagnosis), self._copy):
            case = self._case_to_keep(outcome, exits)  # which now says so
        if report is not None:
            self._write("report", report, lambda: write_report(report, case, diagnosis, redact=self.options.redact))

    def view(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> dict[str, Any]:
        """What a page shows of the run as of now. Where nothing stood still yet there is no evidence, and must be none:
        what is read for a page decides nothing."""
        from unstuck.report.redact import redacted
        from unstuck.report.view import view
        from unstuck.supervise.evidence import Evidence

        self._shown = self._evidence or self._shown or Evidence(self.readings, self.command, self.options.stall_after)
        case = self._shown.present(outcome, exits)
        shown = view(case, self._diagnosis())
        return redacted(shown, case) if self.options.redact else shown

    def _case_to_keep(self, outcome: Outcome, exits: tuple[Exit, ...]) -> Case:
        case = self.evidence.case(outcome, exits)
        return case if self.verdicts is None else self.verdicts.case_to_keep(case)

    def _diagnosis(self) -> Diagnosis:
        from unstuck.rules.diagnose import Diagnosis

        return Diagnosis() if self.verdicts is None else self.verdicts.diagnosis

    def save_plain(self, outcome: Outcome, code: int | None, signal: int | None) -> None:
        """Nothing was found: the flight files and how it ended are enough, and cost next to nothing."""
        run: dict[str, object] = {
            "command": self.command,
            "pid": self.root,
            "outcome": outcome,
            "exit_code": code,
            "signal": signal,
            "seconds": round(time.monotonic() - self.readings.began, 3),
            "probes_off": {**dict(self.readings.flights.probes_off()), **self.parts},
        }
        self._write("run folder", self.folder.path, lambda: self.folder.save_plain(run), self._copy)

    def _copy(self) -> None:
        self.readings.flights.keep_copy(os.path.join(self.folder.path, "flight"))

    def _write(self, part: str, place: str, *writes: Callable[[], None]) -> bool:
        """Write something; a full disk, or an internal error, is said once and costs no more than that."""
        try:
            for write in writes:
                write()
            return True
        except Exception as error:
            if part not in self.parts:
                why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                self.output.line(f"the {part} could not be written to {place}: {why}")
            self.parts.setdefault(part, f"{type(error).__name__}: {error}")
            return False
