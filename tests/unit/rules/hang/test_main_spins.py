"""main-spins: a process that is still importing does not compute forever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Frame
from unstuck.rules.hang import main_spins

NAME = "spin-line-search"
IMPORTING = (
    Frame("/lib/python3.11/site-packages/torch/_meta.py", 7, "<module>"),
    Frame("<frozen importlib._bootstrap>", 241, "_call_with_frames_removed"),
)


def inside(case: Case, *frames: Frame) -> Case:
    """The same, with these frames above what each thread of the main process was seen at; they vary."""
    looks = []
    for number, look in enumerate(case.looks):
        varied = tuple(replace(frame, line=frame.line + number) for frame in frames)
        main = look.processes[0]
        threads = tuple(replace(t, frames=(*varied, *t.frames)) if t.frames else t for t in main.threads)
        looks.append(replace(look, processes=(replace(main, threads=threads), *look.processes[1:])))
    return replace(case, looks=tuple(looks))


def test_a_loop_of_the_users() -> None:
    (finding,) = main_spins.decide(saved_case(NAME))
    assert finding.title.startswith("The training process computes forever in")


def test_a_library_called_by_that_loop_is_still_the_loop() -> None:
    called = Frame("/lib/python3.11/site-packages/numpy/linalg.py", 7, "solve")
    assert len(list(main_spins.decide(inside(saved_case(NAME), called)))) == 1


def test_an_import_that_takes_long_is_no_loop() -> None:
    assert list(main_spins.decide(inside(saved_case(NAME), *IMPORTING))) == []


def test_the_line_of_an_import_that_ctrl_c_ended_is_no_loop() -> None:
    """The frames of the import itself are gone by then."""
    for code in ("import torch", "from torch import nn", "    import numpy as np"):
        line = Frame("/project/train.py", 1, "<module>", user=True, code=code)
        assert list(main_spins.decide(inside(saved_case(NAME), line))) == []


def test_a_program_without_seams_that_goes_on_writing_is_at_work() -> None:
    """Its clock never ran: that it prints now and then is all there is to see."""
    spins = saved_case(NAME)
    seamless = replace(
        spins, interrupted=True, stalls=tuple(replace(s, seams=False, suspect=True) for s in spins.stalls)
    )
    assert len(list(main_spins.decide(seamless))) == 1
    assert len(list(main_spins.decide(writing(seamless, [0, 0, 40])))) == 1, "once: a word at its end, say"
    assert list(main_spins.decide(writing(seamless, range(0, 4000, 40)))) == []
    assert len(list(main_spins.decide(writing(spins, range(0, 4000, 40))))) == 1, "a training shows its steps"


def writing(case: Case, written: Iterable[int]) -> Case:
    """The same, with these bytes read and written by its main process when it was looked at; the last from then on."""
    looks, numbers = [], list(written)
    for number, look in enumerate(case.looks):
        main = replace(look.processes[0], io_bytes=numbers[min(number, len(numbers) - 1)])
        looks.append(replace(look, processes=(main, *look.processes[1:])))
    return replace(case, looks=tuple(looks))
