"""A forward pass that DistributedDataParallel refuses, because parameters got no gradient in the pass before."""

from __future__ import annotations

import re

from .. import flight, journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

MAX_NAMES = 100
_INDICES = re.compile(r":((?: \d+)+)")  # torch lists the numbers of the parameters, and their names only in debug mode


def tell(model: Any, error: RuntimeError, frame: FrameType) -> None:
    """Only if it was raised here: not by a collective inside, nor by the user's code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_name != "_pre_forward":
        return
    from ..records.ranks import ReductionUnfinished
    from ..user_code import site_of

    message = str(error)
    journal.write(
        ReductionUnfinished(
            names=_names(model, message)[:MAX_NAMES], message=message[:200], site=site_of(frame), step=flight.steps()
        )
    )


def _names(model: Any, message: str) -> list[str]:
    trained = [(name, parameter) for name, parameter in model.module.named_parameters() if parameter.requires_grad]
    found = _INDICES.findall(message)
    numbers = {int(word) for word in found[-1].split()} if found else set()
    named = [name for number, (name, _) in enumerate(trained) if number in numbers]
    if named:
        return named
    without = [name for name, parameter in trained if parameter.grad is None]
    return without if len(without) < len(trained) else []
