"""`attach --watch`: stays with the run, looks now and then, and speaks when its state changes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from unstuck.attach.inspection import SECONDS, Answer, Inspection
from unstuck.attach.state import State, doing, state_of
from unstuck.attach.target import Target

PAUSE = 5.0
"""Seconds between two inspections: a look costs the machine some hundredths of a second."""
Tell = Callable[[Answer, State, argparse.Namespace], None]


def stay(target: Target, args: argparse.Namespace, tell: Tell) -> int:
    """Until the run ends or Ctrl-C; the exit status tells whether it was stuck at the last look."""
    before: tuple[object, ...] | None = None
    loud = False
    inspection = Inspection(target, seconds=args.seconds or SECONDS, native=args.native, every_local=args.locals)
    try:
        while True:
            answer = inspection.again()
            state = state_of(answer)
            if sign_of(answer, state) != before:
                before = sign_of(answer, state)
                tell(answer, state, args)
            loud = answer.loud
            if answer.ended or answer.interrupted:
                return 1 if loud else 0
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        return 1 if loud else 0


def sign_of(answer: Answer, state: State) -> tuple[object, ...]:
    """What makes a state another one: its kind, its cause, and what the training is doing, but not the exact line."""
    first = answer.diagnosis.findings[0] if answer.diagnosis.findings else None
    cause = (first.rule, first.where.pid, first.where.sample) if first and answer.loud else ()
    word = "" if cause else doing(answer).partition(" (")[0]
    return (state.kind, cause, word if state.kind != "running" else "")
