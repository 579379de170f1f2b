"""`unstuck.tune(loader)`: the search, from inside a script or notebook."""

from __future__ import annotations

from typing import Any

from unstuck.tuning.outcome import Tuned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstuck.tuning.step import Step

SECONDS = 60.0


def tune(
    loader: Any,
    *,
    seconds: float = SECONDS,
    consume: Callable[[Any], object] | float | None = None,
    verbose: bool = False,
) -> Tuned:
    """Measure a DataLoader with other settings (workers, prefetch, …) and say which are best.

    `consume` is what is done with a batch, as a function of it or in seconds: then it is also known whether data limit
    the training, and the choice is made for the training, not for the loader alone. `loader` itself, its generator
    and the random numbers of this process stay as they are; samples are read, also in this process. Ctrl-C ends the
    search: the best so far is returned. Prints nothing unless `verbose`.
    """
    from unstuck.tuning import session
    from unstuck.tuning.step import Step

    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    step: Step | None = None
    if callable(consume):
        step = session.measure_step(loader, consume, seconds * 0.1)
    elif consume is not None:
        step = Step(compute=float(consume), cpu=0.0, batch=loader.batch_size or 1)
    tuned = session.tune(loader, seconds=seconds, step=step)
    if verbose:
        from unstuck.tuning.page import print_tuned

        print_tuned(tuned)
    return tuned
