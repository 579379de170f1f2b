"""Everything measured of how a training learns, gathered under the governor and told as one fact, ever more rarely.

Each telling is the whole: the latest is all a rule needs.
"""

from __future__ import annotations

import sys
from time import monotonic

from . import activity_stats, births, facts, flight, governor, graph_reading, losses, naming, probes, rates, updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

FIRST = 8
"""Optimizer steps until the first telling; then at each time half as many again, and not twice within a second."""
PAUSE = 1.0
PARAMETERS = 400
_next = FIRST
_told = 0.0
_heads: dict[str, dict[str, Any]] = {}
_names = naming.Named()
_named_at = -1
_births: list[dict[str, Any]] = []
_stepping: dict[int, list[Any]] = {}
_stepped_since = False
_compiled = False
_began = 0.0


def at_backward(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """In full steps, before the backward pass: read the graph, and whether the gradients were cleared."""
    global _stepped_since, _compiled
    if not governor.allows():
        return
    root = _root(arguments, options)
    if root is None or root.grad_fn is None:
        return
    with governor.Reading():
        torch = sys.modules["torch"]
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            graph = graph_reading.read(root.grad_fn)
            _compiled = _compiled or graph.compiled
            updates.reached(graph.leaves)
            _name_all()
            activity_stats.note(graph, _names)
            if graph.head is not None:
                _note_head(graph.head, sys._getframe(2))
            if _stepped_since:
                _stepped_since = False
                for optimizer in updates.optimizers:
                    updates.check_cleared(optimizer)


def before_step(optimizer: Any) -> None:
    if governor.allows():
        with governor.Reading():
            _stepping[id(optimizer)] = updates.before(optimizer)


def after_step(optimizer: Any) -> None:
    """After every optimizer step: the rate, and in sampled ones what the step did."""
    global _stepped_since
    _stepped_since = True
    entry = updates.known(optimizer)
    entry.steps += 1
    if flight.full:
        entry.note_rate(optimizer, flight.steps)
    copies = _stepping.pop(id(optimizer), None)
    if copies is not None:
        with governor.Reading():
            updates.after(optimizer, copies)
    if entry.steps >= _next:
        tell()


def nonfinite(root: Any, frame: FrameType | None, series: losses.Series) -> None:
    """A loss is no number: look for where that was born, while the graph is there."""
    found = births.look(root, frame)
    found["step"], found["site"] = flight.steps, series.site
    _births.append(found)
    tell(news=True)


def tell(*, news: bool = False) -> None:
    global _next, _told
    steps = max((each.steps for each in updates.optimizers), default=0)
    now = monotonic()
    if not news and now - _told < PAUSE:
        _next = steps + 1 + steps // 50
        return
    _told, _next = now, steps + max(FIRST, steps // 2)
    with governor.Reading():
        facts.tell("learning", plain())


def last() -> None:
    """At the end of the process: the final state."""
    if updates.optimizers or losses.series:
        facts.tell("learning", plain())


def plain() -> dict[str, Any]:
    listed = [each for each in updates.parameters.values() if each.ref() is not None]
    listed.sort(key=lambda each: -each.numel)
    chosen = {id(each) for each in listed[:PARAMETERS]}
    return {
        "steps": flight.steps,
        "backwards": losses.backwards,
        "losses": [series.plain() for series in losses.series.values()],
        "optimizers": [each.plain(number) for number, each in enumerate(updates.optimizers)],
        "schedulers": [each.plain() for each in rates.schedulers.values()],
        "parameters": [
            each.plain(_names.names.get(key, ""), _names.kinds.get(key, ""))
            for key, each in updates.parameters.items()
            if id(each) in chosen
        ],
        "heads": list(_heads.values()),
        "activations": [layer.plain(place) for place, layer in sorted(activity_stats.layers.items())],
        "clips": dict(rates.clips),
        "clears": rates.clears,
        "scaler": {key: value for key, value in rates.scaler.items() if key != "unscaled"},
        "births": _births[:4],
        "compiled": _compiled,
        "cost": governor.cost(),
    }


def _name_all() -> None:
    """Once when the first graph is read, and again where parameters came that have no name."""
    global _names, _named_at
    unnamed = sum(1 for key in updates.parameters if key not in _names.names)
    if _named_at < 0 or (unnamed and len(updates.parameters) > _named_at * 2):
        _named_at = len(updates.parameters)
        _names = naming.find(sys._getframe(1))


def _note_head(head: dict[str, Any], frame: FrameType | None) -> None:
    key = f"{head.get('op')}|{head.get('after')}|{head.get('after_dim')}|{bool(head.get('broadcast'))}"
    known = _heads.get(key)
    if known is None:
        if len(_heads) < 8:
            _heads[key] = {**head, "times": 1, "site": _site(frame)}
    else:
        known["times"] += 1


def _site(frame: FrameType | None) -> list[str | int] | None:
    return losses._site(frame) if frame is not None else None


def _root(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    root = arguments[0] if arguments else options.get("tensors")
    if type(root) in (list, tuple) and len(root) == 1:
        root = root[0]
    return root if type(root) is sys.modules["torch"].Tensor else None


def install() -> None:
    losses.when_nonfinite = nonfinite
    losses.unscale = rates.unscaled_value
    probes.on("learning", _remove)


def _remove() -> None:
    losses.when_nonfinite = None
