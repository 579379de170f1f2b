"""How a training learns: losses, optimizers, parameters, activations, what the loss function is given."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Record, Site, record
from .numerics import Birth, Clips, Operation, Scaler, Spike

LossOp = Literal[
    "cross_entropy", "nll", "mse", "smooth_l1", "huber", "bce", "bce_logits", "kl_div", "ctc",
    "log_softmax",  # cross entropy with probabilities as targets
    "squared", "absolute",  # written out: (prediction - target) ** 2, |prediction - target|
]  # fmt: skip
ActivationKind = Literal[
    "relu", "sigmoid", "tanh", "softmax", "leaky_relu", "elu", "gelu", "silu", "log_softmax", "log"
]
Setting = bool | int | float | str | list[int] | list[float] | None


@record
class Loss:
    """One loss, by the line that calls backward."""

    site: Site | None = None
    count: int = 0
    first: list[float] = field(default_factory=list)
    """Its first values, as they were."""
    points: list[tuple[int, float]] = field(default_factory=list)
    """Over the whole run: training step, and mean over a stretch of `stride` values up to it."""
    recent: list[float] = field(default_factory=list)
    """Its last values, as they were."""
    stride: int = 1
    last: float = 0.0
    nonfinite: int = 0
    """Values that were NaN or infinite; they are not in `count`."""
    nonfinite_step: int = -1
    """Of the first of these; -1: there was none."""


@record
class Optimizer:
    """One optimizer, from its first step on."""

    number: int = 0
    kind: str = ""
    steps: int = 0
    lrs: list[tuple[int, float]] = field(default_factory=list)
    """Training step at which it was seen to change, and the highest rate of its groups from then on."""
    settings: dict[str, Setting] = field(default_factory=dict)
    cosines: list[float] = field(default_factory=list)
    """Between the updates of two sampled steps that followed each other: below 0 they undo each other."""
    site: Site | None = None
    """Where it was made."""


@record
class BuiltOptimizer:
    """One optimizer from its constructor on; it may never have stepped."""

    number: int = 0
    kind: str = ""
    site: Site | None = None
    steps: int = 0
    clears: int = 0
    """Calls of its zero_grad."""
    stale: int = 0
    """Of so many `checked` pairs of its steps the gradients of the first were there at every backward between."""
    checked: int = 0
    parameters: int = 0
    trainable: int = 0
    in_graph: int = 0
    moved: int = 0


@record
class Scheduler:
    kind: str = ""
    site: Site | None = None
    steps: int = 0
    per_batch: int = 0
    """So many of its steps came one training step after the one before."""
    settings: dict[str, Setting] = field(default_factory=dict)


@record
class Parameter:
    name: str = ""
    """As the script reaches it (`model.fc1.weight`); empty where no name was found."""
    module: str = ""
    """Class of the module it belongs to."""
    shape: list[int] = field(default_factory=list)
    numel: int = 0
    owner: int | None = None
    """Number of the optimizer that has it and has stepped."""
    requires: bool = True
    seen: int = 0
    """Sampled optimizer steps in which it was looked at."""
    none: int = 0
    """… and had no gradient."""
    zero: int = 0
    """… and had one of nothing but zeros."""
    in_graph: int = 0
    """Sampled losses whose graph ends in it."""
    grads: list[tuple[int, float]] = field(default_factory=list)
    """Training step and norm of the gradient; the first ones all, later ones thinned."""
    weights: list[float] = field(default_factory=list)
    moves: list[tuple[int, float]] = field(default_factory=list)
    """Training step and norm of the update."""
    held: int | None = None
    """Number of the optimizer, as built, that has it; also of one that never stepped."""
    fresh: bool = False
    """It still has the random weights it began with: no training, no checkpoint."""
    moved: bool = True
    """It is no longer what it was at the first backward pass."""
    alike: Literal["", "same", "zero"] = ""
    """All rows of the matrix were the same at first; or all zero."""
    still_alike: bool = False
    called: int = 0
    """Observed steps in which its module was called."""
    idle: int = 0
    """… but only while no graph was recorded."""
    trainable: bool = True
    """It wants a gradient, at the time of writing."""
    is_parameter: bool = True
    """An nn.Parameter, not a plain tensor."""


@record
class Range:
    """Lowest, highest and mean of the sums of rows of probabilities."""

    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0


@record
class OutOfReach:
    """Targets that an activation cannot reach."""

    share: float = 0.0
    floor: float = 0.0
    """Mean square of what is missed: no loss of squares can come below it."""


@record
class Targets:
    """What a loss function was given as targets, over the batches read."""

    batches: int = 0
    count: int = 0
    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    expanded: list[int] = field(default_factory=list)
    """Shape before it was blown up by `expand`; empty if it was not."""
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    sd: float | None = None
    constant: float | None = None
    """The loss of the best prediction that is the same for every sample."""
    integer: bool | None = None
    """All are whole numbers; None: not looked at."""
    ids: str | None = None
    """Name of a tensor of whole numbers in the training that holds the same."""
    values: list[float] | None = None
    """Distinct values, where they are whole and few."""
    beyond: dict[str, OutOfReach] = field(default_factory=dict)
    """By activation: relu, sigmoid, tanh."""
    classes: int | None = None
    majority: float | None = None
    minority: float | None = None
    of: int | None = None
    """The class that most have."""
    rows: Range | None = None
    """Sums of the rows, where the targets are probabilities."""
    negative: bool = False
    floor: float | None = None
    """Below this no prediction can bring the loss."""


@record
class Predictions:
    """What a loss function was given as predictions, over the batches read."""

    min: float | None = None
    max: float | None = None
    mean: float | None = None
    sd: float | None = None
    recent: int = 0
    """Batches of the later half of the run in which classes were counted,"""
    samples: int = 0
    """with so many samples,"""
    top: int | None = None
    """of which most were predicted to be of this class:"""
    share: float | None = None
    rows: Range | None = None
    """Sums of exp(row): 1 where the loss is given log-probabilities."""


@record
class LossHead:
    """The loss function at the end of a graph, and what it was given."""

    op: LossOp
    times: int = 0
    site: Site | None = None
    """The line that computes it."""
    called: Site | None = None
    """The line that calls backward: that of the loss it belongs to."""
    shape: list[int] = field(default_factory=list)
    """Of what the loss was computed on."""
    dim: int | None = None
    after: ActivationKind | Literal[""] = ""
    """The activation right in front of the loss; empty if there is none."""
    after_dim: int | None = None
    after_shape: list[int] = field(default_factory=list)
    broadcast: tuple[list[int], list[int]] | None = None
    """Shape of the prediction, and the larger one it was blown up to."""
    bare: bool = False
    """The loss is the plain mean of this function: its values can be compared with what is computed from targets."""
    signed: bool = False
    """Nothing is added between this function and the loss."""
    weighted: bool = False
    target: Targets = field(default_factory=Targets)
    prediction: Predictions = field(default_factory=Predictions)


@record
class Activation:
    """A relu, sigmoid or tanh, by its place in the forward pass."""

    place: int
    kind: ActivationKind
    name: str = ""
    """The layer whose output it is applied to."""
    shape: list[int] = field(default_factory=list)
    batches: int = 0
    units: int = 0
    dead: int = 0
    """Units that gave 0 for every sample of all these batches."""
    zero: float = 0.0
    saturated: float = 0.0
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


@record
class KeptInList:
    """A layer that no optimizer has, in a plain list or dict of a module."""

    module: str = ""
    holder: str = ""
    kind: str = ""
    attribute: str = ""
    container: str = ""
    site: Site | None = None


@record
class Stray:
    """A parameter that only its optimizer still has."""

    shape: list[int] = field(default_factory=list)
    numel: int = 0


@record
class Mode:
    """How the dropouts and batch norms of a trained module were set in one observed step."""

    step: int = 0
    training: bool = True
    idle: int = 0
    """Regularizing modules in eval mode,"""
    of: int = 0
    """of so many."""
    never_updated: int = 0
    """Batch norms whose statistics were never updated."""
    kinds: list[str] = field(default_factory=list)
    """Classes of the idle ones."""
    frozen: int = 0
    """Parameters of the module that want no gradient."""
    outermost: str = ""
    """Class of the module."""


@record
class GraphCut:
    """Where the graph ends between two modules."""

    lost: list[str] = field(default_factory=list)
    """Modules whose parameters the loss does not reach."""
    parameters: int = 0
    training: bool = True
    everything: bool = False
    """The loss reaches no parameter at all."""
    begins: str = ""
    """The last module with a graph,"""
    ends: str = ""
    """and the first that is given its values without one; "the loss" if there is none."""
    op: str = ""
    """The call that ends the graph: detach, numpy, item, no_grad …"""
    site: Site | None = None
    proven: int = 0
    """2: the very values were seen on both sides; 1: what was called between fits; 0: neither."""
    step: int = 0
    times: int = 0


@record
class FlatOperation:
    """An operation whose slope is 0 everywhere, which parts of the model are behind."""

    operation: str = ""
    lost: list[str] = field(default_factory=list)
    """Parameters that the loss reaches only through it."""
    site: Site | None = None


@record
class Learning(Record):
    """Everything measured of how one process trains; each telling is the whole, the latest is all a rule needs."""

    steps: int = 0
    backwards: int = 0
    losses: list[Loss] = field(default_factory=list)
    optimizers: list[Optimizer] = field(default_factory=list)
    built: list[BuiltOptimizer] = field(default_factory=list)
    schedulers: list[Scheduler] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    heads: list[LossHead] = field(default_factory=list)
    activations: list[Activation] = field(default_factory=list)
    clears: int = 0
    """Calls of zero_grad of any optimizer."""
    clips: Clips | None = None
    scaler: Scaler | None = None
    births: list[Birth] = field(default_factory=list)
    spikes: list[Spike] = field(default_factory=list)
    steep: Operation | None = None
    """The last operation whose slope was NaN or infinite though the loss was a number."""
    flat: FlatOperation | None = None
    kept_in: list[KeptInList] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    first_weights: Site | None = None
    """A line that gives weights one value each, where matrices began with all rows alike."""
    observed: int = 0
    """Steps watched from their modules."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By root module."""
    cut: GraphCut | None = None
    leaf_losses: int = 0
    """Backward calls on a loss without any graph that was only told to want a gradient."""
    eval_site: Site | None = None
    """A line that calls eval(), where a root module was last seen in eval mode."""
    compiled: bool = False
    on_gpu: bool = False
    cost: float = 0.0
    """Seconds of the training's own time that all measuring took,"""
    cost_share: float = 0.0
    """and of the time since it began."""
