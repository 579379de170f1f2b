"""What the training wrote about its loaders: settings, passes, and what repeated in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unstuck.model import Case, Fact, Where
from unstuck.rules.loop.endings import endless_by_itself, why_never_taken, why_test_holds
from unstuck.rules.loop.rounds import Loop, moments


@dataclass(frozen=True)
class Told:
    """The latest fact of a kind about one loader, beside the loader's settings."""

    fact: Fact
    settings: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fact.data[name]

    @property
    def name(self) -> str:
        """DataLoader over LineStream (train.py:31)."""
        return f"the DataLoader over {self.settings.get('dataset') or 'a data set'}"

    def where(self, *sites: str) -> Where:
        """The first of the named places that is in the user's code, else where the pass began."""
        known = [self.settings.get(site) for site in sites] + [self.fact.data.get("site")]
        file, line, function = next((site for site in known if site), (None, None, None))
        return Where(file=file, line=line, function=function, pid=self.fact.pid, step=self.fact.data.get("step"))

    @property
    def line(self) -> str:
        site = self.fact.data.get("site")
        return f"{site[0].rpartition('/')[2]}:{site[1]}" if site else "an unknown line"


def told(case: Case, kind: str) -> Iterator[Told]:
    """The last fact of this kind of each loader."""
    last: dict[tuple[int, int], Fact] = {}
    settings: dict[tuple[int, int], dict[str, Any]] = {}
    for fact in case.facts:
        if fact.kind == "loader":
            settings[fact.pid, fact.data.get("number", -1)] = fact.data
        elif fact.kind == kind:
            last[fact.pid, fact.data["number"]] = fact
    for key, fact in last.items():
        yield Told(fact, settings.get(key, {}))


def nobody_leaves(case: Case, about: Told) -> Loop | None:
    """The loop that draws from this loader, if nothing in it can end the drawing; None if something may, or if the
    loop is not in code that could be read."""
    site = about.fact.data.get("site")
    for moment in moments(case):
        if moment.fact.pid != about.fact.pid or not site:
            continue
        direct = [loop for loop in moment.loops if _draws(loop, site)]
        if direct:
            loop = direct[-1]
            through = loop.told["iterates"]  # islice(loader, n) ends; of a function of whoever's it is not known
            bounded = through["ends"] is True or "type" not in through
            return loop if not bounded and all(why_never_taken(loop, way) for way in loop.exits) else None
        # Drawn with next(): each loop around it may be the one that stops.
        if moment.loops and all(_goes_on(loop) for loop in moment.loops):
            return moment.loops[-1]
    return None


def _draws(loop: Loop, site: list[Any]) -> bool:
    """The `for` whose own line asked for the iterator."""
    here = loop.frame["file"] == site[0] and not loop.is_while
    return here and loop.told["first"] <= site[1] <= loop.told["header"]


def _goes_on(loop: Loop) -> bool:
    if not endless_by_itself(loop) and not why_test_holds(loop):
        return False
    return all(why_never_taken(loop, way) for way in loop.exits)
