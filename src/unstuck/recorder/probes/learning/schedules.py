"""Schedulers, clipping and the loss scaler, as far as the hooks show them."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

from ... import flight, gpu, objects, user_code
from ...records import Site, numerics
from ...records import learning as records
from ...records.learning import Setting
from . import script_lines

MAX_SCHEDULERS = 16
SCALES_READ, SCALES_EVERY = 64, 4  # on a GPU: so many scales at first, then one in so many
SETTINGS = (
    "step_size", "gamma", "T_max", "eta_min", "milestones", "total_steps", "patience", "mode", "factor", "total_iters",
)  # fmt: skip
PLAIN = objects.ids(bool, int, float, str)


class Schedulers:
    """By identity: class, settings, the counts that the hook keeps, and where the script steps it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, dict[str, Setting], Any, Site | None]] = {}
        self._sites: dict[int, Site | None] = {}

    def stepped(self, scheduler: Any, counts: Any) -> None:
        """At the first calls of its step: its constructor makes one, the next shows where the script does."""
        key = id(scheduler)
        if key in self._known:
            if self._sites.get(key) is None:
                self._sites[key] = user_code.call_site_of(("torch/optim/",))
        elif len(self._known) <= MAX_SCHEDULERS:
            own = objects.instance_dict(scheduler) or {}
            settings = {name: _setting(own[name]) for name in SETTINGS if name in own}
            self._known[key] = objects.class_name(type(scheduler)), settings, counts, _function(own.get("lr_lambdas"))

    def records(self) -> list[records.Scheduler]:
        return [
            records.Scheduler(
                kind=kind,
                site=self._sites.get(key),
                function=function,
                steps=counts.steps,
                per_batch=counts.per_batch,
                settings=settings,
            )
            for key, (kind, settings, counts, function) in self._known.items()
        ]


class Clips:
    """Calls of clip_grad_norm_: of those between two that are looked at, each is taken to be like the second."""

    def __init__(self, copies: gpu.Copies) -> None:
        self._copies = copies
        self._calls = self._clipped = 0
        self._hardest = self._sum_ratio = self._max_norm = 0.0
        self._sampled = self._scaled = 0
        """Calls in sampled steps, and those of them on gradients that were not unscaled yet."""
        self._site: Site | None = None
        self._own_passes = -1  # backward passes at the last look at clipping that the script writes out itself
        self._scales: list[float] = []  # that such a script multiplies its loss with: the first, and the last

    def note(self, norm: Any, limit: Any, calls: int, scaled: bool) -> None:
        if type(limit) not in (int, float) or not gpu.plain(norm):
            return
        if self._site is None:
            self._site = user_code.call_site_of(("torch/nn/utils/",))
        if flight.full():
            self._sampled += 1
            self._scaled += scaled
        self._copies.numbers([norm], lambda values: self._take(values[0], float(limit), calls))

    def note_own(self, norm: float, limit: float, scale: float, scaled: bool, site: Site, passes: int) -> None:
        """Clipping without `clip_grad_norm_`; `scaled`: of gradients still multiplied by that scale."""
        if self._own_passes < 0 and self._calls:
            return  # it does both
        passed, self._own_passes = passes - self._own_passes, passes
        self._sampled += 1
        self._scaled += scaled
        self._scales = [*self._scales[:1], scale]
        self._site = site
        self._take(norm, limit, passed if self._calls else 1)

    def _take(self, norm: float, limit: float, calls: int) -> None:
        self._calls += calls
        self._max_norm = limit
        ratio = norm / limit if limit > 0 else 0.0
        if ratio - ratio == 0.0 and ratio > 1:
            self._clipped += calls
            self._sum_ratio += calls * ratio
            self._hardest = max(self._hardest, ratio)

    def record(self) -> numerics.Clips | None:
        if not self._calls:
            return None
        scaled = round(self._calls * self._scaled / self._sampled) if self._sampled else 0
        return numerics.Clips(
            calls=self._calls, clipped=self._clipped, hardest=self._hardest, sum_ratio=self._sum_ratio,
            max_norm=self._max_norm, scaled=scaled, site=self._site, scales=self._scales,
        )  # fmt: skip


class Scaler:
    """The GradScaler."""

    def __init__(self, copies: gpu.Copies) -> None:
        self._copies = copies
        self._scale: float | None = None
        self._first: float | None = None
        self._lowest: float | None = None
        self._updates = self._skipped = 0
        self.scaled = False  # the gradients are multiplied by it now

    def scaling(self, scaler: Any) -> None:
        """A loss was multiplied."""
        own = objects.instance_dict(scaler) or {}
        self.scaled = own.get("_enabled") is True
        tensor: Any = own.get("_scale")
        if self.scaled and gpu.plain(tensor) and gpu.near(tensor):
            self._scale = float(tensor)
            self._first = self._first or self._scale

    def updated(self, scaler: Any) -> None:
        own = objects.instance_dict(scaler) or {}
        tensor: Any = own.get("_scale")
        if own.get("_enabled") is not True or not gpu.plain(tensor):
            return
        if gpu.near(tensor) or flight.steps() < SCALES_READ or not flight.steps() % SCALES_EVERY:
            self._copies.numbers([tensor], lambda values: self._take(values[0]))

    def _take(self, value: float) -> None:
        self._first = self._first or value
        self._updates += 1
        self._skipped = self._skipped + 1 if value < (self._scale or value) else 0
        self._scale = value
        self._lowest = value if self._lowest is None else min(self._lowest, value)

    def record(self) -> numerics.Scaler | None:
        if self._scale is None:
            return None
        return numerics.Scaler(
            scale=self._scale, first=self._first, lowest=self._lowest, updates=self._updates,
            skipped_in_row=self._skipped,
        )  # fmt: skip


def _function(given: Any) -> Site | None:
    """Where the first of a LambdaLR's functions is defined."""
    first = given[0] if type(given) is list and given else None
    function = first.__func__ if type(first) is MethodType else first
    if type(function) is not FunctionType:
        return None
    return script_lines.site_at(function.__code__, function.__code__.co_firstlineno)


def _setting(value: Any) -> Setting:
    kind = type(value)
    if id(kind) in PLAIN:
        return value  # type: ignore[no-any-return]  # its type was just looked at
    if issubclass(kind, dict):  # milestones are kept as a Counter
        keys = list(dict.keys(value))[:64]
        return sorted(key for key in keys if type(key) is int or type(key) is float)[:8]
    return objects.class_name(kind)
