"""What the training wrote about its loaders: settings, passes, and what repeated in them."""

from __future__ import annotations

from unstuck.model import Case
from unstuck.recorder.records import Site
from unstuck.recorder.records.loaders import LoaderState
from unstuck.rules.loop.endings import endless_by_itself, why_never_taken, why_test_holds
from unstuck.rules.loop.rounds import Loop, moments


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
