"""What the training wrote about its loaders: settings, passes, and what repeated in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from unstuck.model import Case, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.loaders import LoaderSettings, LoaderState
from unstuck.rules.loop.endings import endless_by_itself, why_never_taken, why_test_holds
from unstuck.rules.loop.rounds import Loop, moments

State = TypeVar("State", bound=LoaderState)


@dataclass(frozen=True)
class LoaderReport(Generic[State]):
    """The latest record of a kind about one loader, with the loader's settings."""

    state: State
    settings: LoaderSettings

    @property
    def name(self) -> str:
        """the DataLoader over LineStream"""
        return f"the DataLoader over {self.settings.dataset or 'a data set'}"

    @property
    def dataset(self) -> str:
        return self.settings.dataset or "the data set"

    @property
    def line(self) -> str:
        """train.py:31"""
        site = self.state.site
        return f"{site[0].rpartition('/')[2]}:{site[1]}" if site else "an unknown line"

    def where(self, *sites: Site | None) -> Where:
        """The first of these places that is in the user's code, else where the pass began."""
        return first_of(self.state.pid, self.state.step, *sites, self.state.site)


def first_of(pid: int, step: int | None, *sites: Site | None) -> Where:
    file, line, function = next((site for site in sites if site), (None, None, None))
    return Where(file=file, line=line, function=function, pid=pid, step=step)


def latest(case: Case, records: Iterable[State]) -> Iterator[LoaderReport[State]]:
    """The last of these records of each loader."""
    settings = {(about.pid, about.number): about for about in case.loaders}
    last = {(state.pid, state.number): state for state in records}
    for (pid, number), state in last.items():
        yield LoaderReport(state, settings.get((pid, number)) or LoaderSettings(pid=pid, number=number))


def nobody_leaves(case: Case, state: LoaderState) -> Loop | None:
    """The loop that draws from this loader, if nothing in it can end the drawing; None if something may, or if the
    loop is not in code that could be read."""
    site = state.site
    for moment in moments(case):
        if moment.snapshot.pid != state.pid or not site:
            continue
        direct = [loop for loop in moment.loops if _draws(loop, site)]
        if direct:
            loop = direct[-1]
            through = loop.described.iterates  # islice(loader, n) ends; of a function of whoever's it is not known
            bounded = through.ends is True or not through.type
            return loop if not bounded and all(why_never_taken(loop, way) for way in loop.exits) else None
        # Drawn with next(): each loop around it may be the one that stops.
        if moment.loops and all(_goes_on(loop) for loop in moment.loops):
            return moment.loops[-1]
    return None


def _draws(loop: Loop, site: Site) -> bool:
    """The `for` whose own line asked for the iterator."""
    here = loop.frame.file == site[0] and not loop.is_while
    return here and loop.line <= site[1] <= loop.described.header


def _goes_on(loop: Loop) -> bool:
    if not endless_by_itself(loop) and not why_test_holds(loop):
        return False
    return all(why_never_taken(loop, way) for way in loop.exits)
