"""What the training recorded about each of its loaders: the latest record of a kind, with the loader's settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from unstuck.model import Case, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.loaders import LoaderSettings, LoaderState
from unstuck.text import spot

State = TypeVar("State", bound=LoaderState)


@dataclass(frozen=True)
class LoaderReport(Generic[State]):
    state: State
    settings: LoaderSettings

    @property
    def name(self) -> str:
        """the DataLoader over LineStream"""
        return f"the DataLoader over {self.settings.dataset or 'a dataset'}"

    @property
    def dataset(self) -> str:
        return self.settings.dataset or "the dataset"

    @property
    def line(self) -> str:
        """train.py:31"""
        return spot(*self.state.site[:2]) if self.state.site else "an unknown line"

    def where(self, *sites: Site | None) -> Where:
        """The first of these places that is in the user's code, else where the pass began."""
        return first_of(self.state.pid, self.state.step, *sites, self.state.site)


def first_of(pid: int, step: int | None, *sites: Site | None) -> Where:
    file, line, function = next((site for site in sites if site), (None, None, None))
    return Where(file=file, line=line, function=function or None, pid=pid, step=step)


def latest(case: Case, records: Iterable[State]) -> Iterator[LoaderReport[State]]:
    """The last of these records of each loader."""
    last = {(state.pid, state.number): state for state in records}
    for (pid, number), state in last.items():
        yield LoaderReport(state, settings_of(case, pid, number))


def settings_of(case: Case, pid: int, number: int) -> LoaderSettings:
    known = (loader for loader in reversed(case.loaders) if (loader.pid, loader.number) == (pid, number))
    return next(known, None) or LoaderSettings(pid=pid, number=number)
