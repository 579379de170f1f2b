"""Everything measured of how a training learns, gathered under the governor and told as one fact, ever more rarely.

Each telling is the whole: the latest is all a rule needs.
"""

from __future__ import annotations

import sys
from time import monotonic

from ... import facts, flight, governor, gpu, guard, hiding
from ... import layout as at
from ..data import batch_statistics
from ..death import failures
from ..numerics import nan_lines, nan_origin, singular, spikes
from . import (
    activations,
    graph_reading,
    loss_head,
    loss_lines,
    losses,
    naming,
    observed_steps,
    ownership,
    schedules,
    script_lines,
    targets,
    updates,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

FIRST = 8
"""Optimizer steps until the first telling; then at each time half as many again."""
PAUSE, LONGEST = 1.0, 60.0
"""Seconds between two tellings: at least one, and half as long as the training has run, but no more than a minute."""
PARAMETERS = 400
FEW = 16
"""Optimizers of which it is looked up where they are made."""
WIDE = 3.0
"""Root of the mean square of a weight times the root of its inputs: 0.6 as torch begins, 1.4 by He's rule."""
_next = FIRST
_told = 0.0
_heads: dict[str, dict[str, Any]] = {}
_given: dict[str, targets.Given] = {}
_names = naming.Named()
_named_at = -1
_births: list[dict[str, Any]] = []
_flat: dict[str, Any] = {}
"""The operation without a slope that parts of the model are behind."""
_look = FIRST
"""Optimizer steps until who owns what is looked at once more."""
_stepping: dict[int, list[Any]] = {}
_stepped_since = False
_compiled = False
_began = 0.0


class Owners:
    """Who has which parameter, as it was when last looked at: at the end of the process the model may be gone."""

    def __init__(self) -> None:
        self.parameters: dict[int, tuple[updates.Parameter, dict[str, object]]] = {}
        self.sites: dict[int, list[str | int] | None] = {}
        """Where a layer is made, by its place among the activations."""
        self.rest = ownership.plain(_names)

    @property
    def gone(self) -> bool:
        """Some of what was there when last looked at is no more."""
        return any(each.ref() is None for each, _ in self.parameters.values())

    def look(self) -> None:
        listed = [(key, each) for key, each in updates.parameters.items() if each.ref() is not None]
        chosen = {key for key, _ in sorted(listed, key=lambda entry: -entry[1].numel)[:PARAMETERS]}
        held = ownership.holders()
        self.parameters = {key: (each, ownership.of_parameter(key, held)) for key, each in listed if key in chosen}
        self.rest = ownership.plain(_names)
        for place, layer in activations.layers.items():
            if layer.odd() and self.sites.get(place) is None:
                self.sites[place] = _made_so(layer) or script_lines.layer_site(layer.name, _names)


def _made_so(layer: activations.Layer) -> list[str | int] | None:
    """Where the script draws weights itself, if those of this layer are far wider than torch makes them."""
    key = next((key for key, name in _names.names.items() if name == f"{layer.name}.weight"), None)
    known = updates.parameters.get(key) if key is not None else None
    if known is None or not known.weights or len(known.shape) < 2:
        return None
    fan_in = known.numel / known.shape[0]
    return script_lines.given_width() if known.weights[0] / known.numel**0.5 * fan_in**0.5 > WIDE else None


_owners = Owners()


def at_backward(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """In full steps, before the backward pass: read the graph, and whether the gradients were cleared."""
    global _stepped_since, _compiled
    if not governor.allows():
        ownership.missed()
        observed_steps.missed()
        return
    root = _root(arguments, options)
    if root is None or root.grad_fn is None:
        if root is not None and root.requires_grad:
            with governor.Reading():
                _name_all()
                ownership.at_backward()
                observed_steps.nothing_reached()
        return
    with governor.Reading():
        torch = sys.modules["torch"]
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            graph = graph_reading.read(root.grad_fn)
            _compiled = _compiled or graph.compiled
            updates.reached(graph.leaves)
            _name_all()
            ownership.at_backward()
            observed_steps.at_backward(graph.leaves, whole=not graph.capped)
            activations.note(graph, _names)
            if graph.flat and not graph.capped and not _flat:
                _note_flat(root.grad_fn, graph.flat, sys._getframe(2))
            head = loss_head.find(root.grad_fn)
            if head is not None:
                _note_head(head, sys._getframe(2))
            if _stepped_since:
                _stepped_since = False
                for optimizer in updates.optimizers:
                    updates.check_cleared(optimizer)
    if not updates.optimizers and losses.backwards >= _next:
        tell()


def before_step(optimizer: Any) -> None:
    if governor.allows():
        with governor.Reading():
            _stepping[id(optimizer)] = updates.before(optimizer)


def after_step(optimizer: Any) -> None:
    """After every optimizer step; in sampled ones, and in the one after those, there is more to do than to count."""
    global _stepped_since, _look
    _stepped_since = True
    if losses.when_traced is not None and not nan_lines.stepped():
        losses.when_traced = None
    entry = updates.known(optimizer)
    entry.steps += 1
    if not (flight.full() or entry.fresh or observed_steps.now):
        if entry.steps >= _next:
            tell()
        return
    entry.fresh = flight.full()
    if entry.steps == 1 and len(updates.optimizers) <= FEW:
        with hiding.Hidden():
            entry.site = loss_lines.made(sys._getframe(1), entry.kind)
    if flight.full():
        entry.note_rate(optimizer, flight.steps())
    else:
        entry.last = None  # the next sampled step does not follow on this one
    copies = _stepping.pop(id(optimizer), None)
    if copies is not None:
        with governor.Reading():
            updates.after(optimizer, copies)
    ownership.stepped(optimizer)
    observed_steps.after_step(_names, optimizer)
    if entry.steps >= _look:
        _look = entry.steps + max(FIRST, entry.steps // 2)
        with governor.Reading():
            _owners.look()
    if entry.steps >= _next:
        tell()


def nonfinite(root: Any, frame: FrameType | None, series: losses.Series) -> None:
    """A loss is no number: look for where that was born, while the graph is there."""
    with hiding.Hidden():
        _born(root, frame, series)


def _born(root: Any, frame: FrameType | None, series: losses.Series) -> None:
    if series.nonfinite == 2:
        _trace(series)
        return
    if series.nonfinite > 2:
        tell(news=True)
        return
    if len(_births) >= 4:
        return
    if _named_at < 0:
        _name_all()
    found = nan_origin.look(root, frame, _names)
    found["step"], found["site"] = flight.steps(), series.site
    found["before"], found["last"] = series.count, series.last
    found["since"], found["late"] = series.nonfinite_step, gpu.away(root) and not gpu.exact
    if found["broken_parameters"] and singular.steep is not None and flight.steps() - singular.steep["step"] <= 1:
        found["operations"] = [dict(singular.steep)]
    for about in found["operations"][:2]:
        about["site"] = nan_lines.written(about["operation"], frame)
    for about in found["inputs"]:
        about["assigned"] = nan_lines.assigned(about["name"].partition("[")[0], about["file"], about["function"])
    _births.append(found)
    tell(news=True)


def _trace(series: losses.Series) -> None:
    """The training goes on though its loss is no number: its next step can tell the line."""
    birth = next((each for each in _births if each["site"] == series.site), None)
    if birth is not None and not _compiled and nan_lines.trace(birth):
        losses.when_traced = _traced


def _traced(root: Any) -> None:
    with hiding.Hidden():
        if nan_lines.traced(root):
            tell(news=True)
    if not nan_lines.waiting():
        losses.when_traced = None


def finite(root: Any, frame: FrameType | None, series: losses.Series, value: float) -> None:
    """A loss that stands out, or whose gradient may be no number."""
    with hiding.Hidden():
        if series.far:
            spikes.note(series, value, frame)
        before = singular.steep
        singular.guard(root, series)
        if singular.steep is not before and singular.steep is not None:
            known = before.get("site") if before is not None else None
            singular.steep["site"] = known or nan_lines.written(singular.steep["operation"], frame)


def forget() -> None:
    """In a forked child: what its parent trains is not its own, and must not be touched here."""
    for held in (losses.series, updates.parameters, updates._by_identity, ownership.by_identity, ownership.states):
        gpu.abandon(held)
    for listed in (updates.optimizers, ownership.built, _births, spikes.spikes):
        gpu.abandon(listed)
    for noted in (activations.layers, _heads, _given, _flat, _stepping, schedules.schedulers):
        gpu.abandon(noted)
    gpu.forget()
    gpu.abandon([observed_steps.now])
    observed_steps.end()
    nan_lines.stop()
    losses.when_traced = None


def tell(*, news: bool = False) -> None:
    global _next, _told, _began
    steps = max((each.steps for each in updates.optimizers), default=losses.backwards)
    now = monotonic()
    if not news and now - _told < min(LONGEST, max(PAUSE, 0.5 * (_told - _began))):
        _next = steps + 1 + steps // 50
        return
    _began = _began or now
    _told, _next = now, steps + max(FIRST, steps // 2)
    with governor.Reading():
        facts.tell_anew("learning", plain(), at.LEARNING)


def last() -> None:
    """At the end of the process: the final state."""
    if updates.optimizers or losses.series:
        gpu.last()
        facts.tell_anew("learning", plain(at_the_end=True), at.LEARNING)


def plain(*, at_the_end: bool = False) -> dict[str, Any]:
    if not (at_the_end and _owners.gone):
        _owners.look()
    ownership.count(_owners.rest["built"])
    return {
        "steps": flight.steps(),
        "backwards": losses.backwards,
        "losses": [series.plain() for series in losses.series.values()],
        "optimizers": [each.plain(number) for number, each in enumerate(updates.optimizers)],
        "schedulers": [each.plain() for each in schedules.schedulers.values()],
        "parameters": [
            {**each.plain(_names.names.get(key, ""), _names.kinds.get(key, "")), **about}
            for key, (each, about) in _owners.parameters.items()
        ],
        "heads": _heads_plain(),
        "activations": [
            {**layer.plain(place), "site": _owners.sites.get(place)}
            for place, layer in sorted(activations.layers.items())
        ],
        "clips": {**schedules.clips, "site": schedules.clip_site},
        "clears": schedules.clears,
        "scaler": {key: value for key, value in schedules.scaler.items() if key != "unscaled"},
        "births": _births[:4],
        "spikes": spikes.spikes,
        **_owners.rest,
        "forward": observed_steps.plain(),
        "flat": _flat,
        "steep": singular.steep,
        "compiled": _compiled,
        "on_gpu": gpu.used,
        "cost": governor.cost(),
    }


def _name_all() -> None:
    """Once when the first graph is read, and again where parameters came that have no name."""
    global _names, _named_at
    unnamed = sum(1 for key in updates.parameters if key not in _names.names)
    if _named_at < 0 or (unnamed and len(updates.parameters) > _named_at * 2):
        _named_at = len(updates.parameters)
        _names = naming.find(sys._getframe(1))


def _note_flat(root: Any, nodes: list[Any], frame: FrameType | None) -> None:
    lost = [name for leaf in graph_reading.behind(root, nodes) if (name := _names.name(leaf))]
    if lost:
        operation = graph_reading.FLAT[graph_reading.name_of(nodes[0])]
        _flat.update(operation=operation, lost=lost[:64], site=nan_lines.written(operation, frame))


def _note_head(head: dict[str, Any], frame: FrameType | None) -> None:
    called = _site(frame)
    given = head.pop("given", None)
    line = called[1] if called else 0
    key = f"{head.get('op')}|{head.get('after')}|{head.get('after_dim')}|{bool(head.get('broadcast'))}|{line}"
    known = _heads.get(key)
    if known is None:
        if len(_heads) >= 8:
            return
        known = _heads[key] = {
            **head,
            "times": 0,
            "called": called,
            "site": loss_lines.site(frame, str(head.get("op"))) or called,
        }
        _given[key] = targets.Given(str(head.get("op")))
    known["times"] += 1
    if given is not None:
        batch_statistics.target_is(given[0], str(head.get("op")), given[3])
        _given[key].take(*given)
        if _given[key].batches == 1 and given[0] is not None:
            _given[key].look_for_ids(given[0], loss_lines.user_frame(frame))


def _heads_plain() -> list[dict[str, Any]]:
    return [
        {**head, "target": _given[key].target(), "prediction": _given[key].prediction()} for key, head in _heads.items()
    ]


def _site(frame: FrameType | None) -> list[str | int] | None:
    return losses._site(frame) if frame is not None else None


def _root(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    root: Any = arguments[0] if arguments else options.get("tensors")
    if type(root) in (list, tuple) and len(root) == 1:
        root = root[0]
    return root if type(root) is sys.modules["torch"].Tensor else None


def install() -> None:
    losses.when_nonfinite = nonfinite
    losses.when_finite = finite
    losses.when_far, losses.at_hand = spikes.came_late, failures.batches
    losses.unscale, losses.unscaled = schedules.unscaled_value, schedules.unscaled_tensor
    observed_steps.install()
    guard.on("learning", _remove)


def _remove() -> None:
    losses.when_nonfinite = losses.when_finite = losses.when_traced = losses.when_far = losses.at_hand = None
    nan_lines.stop()
