"""What the recorder measured of a training's learning, as rules read it: the latest telling of each process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from unstuck.model import Case, Where

Site = tuple[str, int, str]


@dataclass(frozen=True)
class Loss:
    """One loss, by the line that calls backward."""

    site: Site | None
    count: int
    first: tuple[float, ...]
    """Its first values, as they were."""
    points: tuple[tuple[int, float], ...]
    """Over the whole run: training step, and mean over a stretch of `stride` values up to it."""
    stride: int
    last: float
    nonfinite: int
    nonfinite_step: int
    """-1: every value was a number."""
    recent: tuple[float, ...] = ()
    """Its last values, as they were."""


@dataclass(frozen=True)
class Optimizer:
    number: int
    kind: str
    steps: int
    lrs: tuple[tuple[int, float], ...]
    """Training step at which it was seen to change, and the highest rate of its groups from then on."""
    settings: dict[str, Any]
    cosines: tuple[float, ...]
    """Between the updates of two sampled steps that followed each other: below 0 they undo each other."""
    stale: int
    """At so many of the `checked` first backward passes after a step the gradients of the step before were there."""
    checked: int
    site: Site | None = None
    """Where it was made."""


@dataclass(frozen=True)
class Scheduler:
    kind: str
    site: Site | None
    steps: int
    per_batch: int
    """So many of its steps came one training step after the one before."""
    settings: dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    name: str
    """As the script reaches it (`model.fc1.weight`); empty where no name was found."""
    module: str
    """Class of the module it belongs to."""
    shape: tuple[int, ...]
    numel: int
    owner: int | None
    """Number of the optimizer that has it."""
    requires: bool
    seen: int
    """Sampled optimizer steps in which it was looked at."""
    none: int
    """… and had no gradient."""
    zero: int
    """… and had one of nothing but zeros."""
    in_graph: int
    """Sampled losses whose graph ends in it."""
    grads: tuple[tuple[int, float], ...]
    """Training step and norm of the gradient; the first ones all, later ones thinned."""
    weights: tuple[float, ...]
    moves: tuple[tuple[int, float], ...]
    """Training step and norm of the update."""
    held: int | None = None
    """Number of the optimizer, as built, that has it; also of one that never stepped."""
    fresh: bool = False
    """It still has the random weights it began with: no training, no checkpoint."""
    moved: bool = True
    """It is no longer what it was at the first backward pass."""
    alike: str = ""
    """All rows of the matrix were the same at first: "same", or "zero"."""
    still_alike: bool = False
    called: int = 0
    """Observed steps in which its module was called."""
    idle: int = 0
    """… but only while no graph was recorded."""
    trainable: bool = True
    """It wants a gradient, at the time of telling."""
    is_parameter: bool = True
    """An nn.Parameter, not a plain tensor."""

    @property
    def layer(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def update_ratios(self) -> tuple[float, ...]:
        """Size of the update beside the weight, a sampled step each."""
        return tuple(m / w for (_, m), w in zip(self.moves, self.weights, strict=False) if w > 0)

    @property
    def grad(self) -> float:
        """Median norm of its gradient."""
        return median(norm for _, norm in self.grads) if self.grads else 0.0


@dataclass(frozen=True)
class Head:
    """The loss function at the end of a graph, and what it was given."""

    op: str
    """cross_entropy, nll, mse, bce, bce_logits, kl_div, log_softmax (cross entropy with probabilities), squared …"""
    times: int
    site: Site | None
    shape: tuple[int, ...] = ()
    """Of what the loss was computed on."""
    dim: int | None = None
    after: str = ""
    """The activation right in front of the loss: softmax, sigmoid, tanh, relu, log_softmax; empty if none is."""
    after_dim: int | None = None
    broadcast: tuple[tuple[int, ...], ...] = ()
    """Shape of the prediction, and the larger one it was blown up to."""
    target: dict[str, Any] = field(default_factory=dict)
    """Over the batches read (see record/targets.py): shape, dtype, min, max, mean, sd, classes …"""
    prediction: dict[str, Any] = field(default_factory=dict)
    called: Site | None = None
    """The line that calls backward: that of the loss it belongs to."""
    bare: bool = False
    """The loss is the plain mean of this function: its values can be compared with what is computed from targets."""
    signed: bool = False
    """Nothing is added between this function and the loss."""
    weighted: bool = False
    after_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Activation:
    """A relu, sigmoid or tanh, by its place in the forward pass."""

    place: int
    kind: str
    name: str
    """The layer whose output it is applied to."""
    shape: tuple[int, ...]
    batches: int
    units: int
    dead: int
    """Units that gave 0 for every sample of all these batches."""
    zero: float
    saturated: float
    """Share of values where the activation is flat (sigmoid of ±5, tanh of ±3)."""
    late_batches: int = 0
    """The last batches, counted for themselves …"""
    late_dead: int = 0
    """… in which so many units gave nothing but 0."""
    early_saturated: float = 0.0
    late_saturated: float = 0.0
    gated: bool = False
    """Its result is multiplied with another one."""
    site: Site | None = None
    """Where the layer is made."""


@dataclass(frozen=True)
class Built:
    """One optimizer from its constructor on (see record/ownership.py)."""

    number: int
    kind: str
    site: Site | None
    steps: int
    clears: int
    """Calls of its zero_grad."""
    stale: int
    """Of so many `checked` pairs of its steps the gradients of the first were there at every backward between."""
    checked: int
    parameters: int
    trainable: int
    in_graph: int
    moved: int


@dataclass(frozen=True)
class Learning:
    """One training process."""

    pid: int
    at: float
    steps: int
    backwards: int
    losses: tuple[Loss, ...]
    optimizers: tuple[Optimizer, ...]
    schedulers: tuple[Scheduler, ...]
    parameters: tuple[Parameter, ...]
    heads: tuple[Head, ...]
    activations: tuple[Activation, ...]
    births: tuple[dict[str, Any], ...]
    """Losses that were no number, and what is known of where that came from (see record/births.py)."""
    clips: dict[str, Any]
    clears: int
    scaler: dict[str, Any]
    compiled: bool
    flat: dict[str, Any]
    """The operation without a slope that parameters are behind, its line, and these."""
    steep: dict[str, Any] = field(default_factory=dict)
    """The last operation whose slope was no number though the loss was one (see record/singular.py)."""
    spikes: tuple[dict[str, Any], ...] = ()
    """Losses far above their usual level, with their batches (see record/spikes.py)."""

    built: tuple[Built, ...] = ()
    kept_in: tuple[dict[str, Any], ...] = ()
    """Layers that no optimizer has, in a plain list or dict of a module."""
    strays: tuple[dict[str, Any], ...] = ()
    """Parameters that only their optimizer still has."""
    first_weights: Site | None = None
    forward: dict[str, Any] = field(default_factory=dict)
    """Observed steps: modes of the modules, and where the graph is cut (see record/forward.py)."""

    @property
    def loss(self) -> Loss | None:
        """The loss that is computed most often."""
        return max(self.losses, key=lambda loss: loss.count, default=None)

    def loss_of(self, head: Head) -> Loss | None:
        """The loss whose graph ends in it."""
        return next((loss for loss in self.losses if loss.site == head.called), None)

    def owned(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.owner is not None]

    def where(self, site: Site | None, **more: Any) -> Where:
        file, line, function = site or (None, None, None)
        return Where(file=file, line=line, function=function, pid=self.pid, step=more.pop("step", self.steps), **more)


def learnings(case: Case) -> Iterator[Learning]:
    """Of every process that trains, as it last told."""
    latest: dict[int, Any] = {}
    for fact in case.facts:
        if fact.kind == "learning":
            latest[fact.pid] = fact
    for fact in latest.values():
        yield read(fact.pid, fact.at, fact.data)


def read(pid: int, at: float, data: dict[str, Any]) -> Learning:
    return Learning(
        pid=pid,
        at=at,
        steps=data["steps"],
        backwards=data["backwards"],
        losses=tuple(
            Loss(
                _site(each["site"]),
                each["count"],
                tuple(each["first"]),
                tuple((step, value) for step, value in each["points"]),
                each["stride"],
                each["last"],
                each["nonfinite"],
                each["nonfinite_step"],
                tuple(each.get("recent") or ()),
            )
            for each in data["losses"]
        ),
        optimizers=tuple(
            Optimizer(
                each["number"],
                each["kind"],
                each["steps"],
                _pairs(each["lrs"]),
                each["settings"],
                tuple(float(value) for value in each["cosines"]),
                each["stale"],
                each["checked"],
                _site(each.get("site")),
            )
            for each in data["optimizers"]
        ),
        schedulers=tuple(
            Scheduler(each["kind"], _site(each["site"]), each["steps"], each["per_batch"], each["settings"])
            for each in data["schedulers"]
        ),
        parameters=tuple(_parameter(each) for each in data["parameters"]),
        heads=tuple(_head(each) for each in data["heads"]),
        activations=tuple(
            Activation(**{**each, "shape": tuple(each["shape"]), "site": _site(each.get("site"))})
            for each in data["activations"]
        ),
        births=tuple(data["births"]),
        clips=data["clips"],
        clears=data["clears"],
        scaler=data["scaler"],
        compiled=data["compiled"],
        flat=data.get("flat") or {},
        steep=data.get("steep") or {},
        built=tuple(Built(**{**each, "site": _site(each["site"])}) for each in data.get("built") or ()),
        kept_in=tuple(data.get("kept_in") or ()),
        strays=tuple(data.get("strays") or ()),
        first_weights=_site(data.get("first_weights")),
        forward=data.get("forward") or {},
        spikes=tuple(data.get("spikes") or ()),
    )


def _parameter(each: dict[str, Any]) -> Parameter:
    plain = {**each, "shape": tuple(each["shape"]), "weights": tuple(float(value) for value in each["weights"])}
    return Parameter(**{**plain, "grads": _pairs(each["grads"]), "moves": _pairs(each["moves"])})


def _head(each: dict[str, Any]) -> Head:
    return Head(
        op=each["op"],
        times=each["times"],
        site=_site(each.get("site")),
        shape=tuple(each.get("shape") or ()),
        dim=each.get("dim"),
        after=each.get("after") or "",
        after_dim=each.get("after_dim"),
        broadcast=tuple(tuple(shape or ()) for shape in each.get("broadcast") or ()),
        target=each.get("target") or {},
        prediction=each.get("prediction") or {},
        called=_site(each.get("called")),
        bare=bool(each.get("bare")),
        signed=bool(each.get("signed")),
        weighted=bool(each.get("weighted")),
        after_shape=tuple(each.get("after_shape") or ()),
    )


def _pairs(points: list[list[Any]]) -> tuple[tuple[int, float], ...]:
    return tuple((step, float(value)) for step, value in points)  # what is no number is written as a word


def _site(site: Any) -> Site | None:
    return (site[0], site[1], site[2]) if site else None
