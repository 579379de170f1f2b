"""How many workers to try next: what should fill the cores, then halfway to the neighbours of the best."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .candidates import Candidate, Limits
    from .worth import Worth

PLATEAU = 0.07
"""A neighbour nearer than this to the best: there is nothing to be found between them."""
EACH_COUNTS = 0.8
"""Share of what as many workers could bring at best, from which on none of them can be spared."""


def fills_the_cores(present: Candidate, limits: Limits) -> int:
    """As many workers as keep all cores busy: more than cores where a worker mostly waits."""
    used = present.wanted_per_sample * present.figures.rate / max(1, present.settings.num_workers)
    wanted = limits.cores if used >= 0.5 or present.error else round(limits.cores / max(used, 0.01))
    return min(wanted, limits.most_workers)


def after(points: dict[int, Candidate], best: Candidate, worth: Worth, *, enough: bool) -> int | None:
    """A number of workers beside the best that is not known; None if all that matter are. `enough`: with the best so
    far data do not limit the training."""
    number = best.settings.num_workers
    if number not in points:  # another start method leads: its neighbours are not these
        return None
    lower = max((each for each in points if each < number), default=None)
    higher = min((each for each in points if each > number), default=None)
    near = max(1, number // 4)
    if higher is None and not worth.is_busy(best) and not enough:
        more = min(number * 2 or 1, worth.limits.most_workers)
        if more > number:
            return more
    if higher is not None and higher - number > near and _between(best, points[higher], worth) and not enough:
        return (number + higher) // 2
    if lower is None and number:
        return number // 2
    if lower is not None and number - lower > near and _between(best, points[lower], worth):
        return (number + lower) // 2
    return None


def _between(best: Candidate, neighbour: Candidate, worth: Worth) -> bool:
    """Something better may lie between the best and this one."""
    its, top = worth.score(neighbour), worth.score(best)
    mine, other = best.settings.num_workers, neighbour.settings.num_workers
    if neighbour.error or other > mine:
        return bool(neighbour.error) or other > 2 * mine or its < (1 - PLATEAU) * top
    more = mine / max(1, other)
    return its < (1 - PLATEAU) * top and top < EACH_COUNTS * more * its  # else each worker brings its share
