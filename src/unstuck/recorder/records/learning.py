"""How a training learns: losses, optimizers, parameters, activations, what the loss function gets."""

from __future__ import annotations

from typing import Literal

from . import Record, Site, Struct
from .numerics import Birth, Clips, Operation, Scaler, Spike

LossOp = Literal[
    "cross_entropy", "nll", "mse", "smooth_l1", "huber", "bce", "bce_logits", "kl_div", "ctc",
    "log_softmax",  # cross entropy with probabilities as targets
    "squared", "absolute",  # written out: (prediction - target) ** 2, |prediction - target|
    "own",  # another one that the script writes out itself
]  # fmt: skip
ActivationKind = Literal[
    "relu", "sigmoid", "tanh", "softmax", "leaky_relu", "elu", "gelu", "silu", "log_softmax", "log",
    "gru", "lstm", "gated_tanh",  # the hidden state of a recurrent layer; a tanh times a sigmoid, as of an LSTM cell
]  # fmt: skip
Setting = bool | int | float | str | list[int] | list[float] | None


class Loss(Struct):
    """One loss, by the line that calls backward."""

    site: Site | None = None
    count: int = 0
    first: list[float] = []  # its first values
    points: list[tuple[int, float]] = []  # of the whole run: training step, and mean of `stride` values up to it
    recent: list[float] = []  # its last values
    stride: int = 1
    last: float = 0.0
    nonfinite: int = 0  # NaN or Inf values; they are not in `count`
    nonfinite_step: int = -1  # of the first of these; -1: there was none


class Optimizer(Struct):
    """One optimizer, from its first step on."""

    number: int = 0
    kind: str = ""
    steps: int = 0
    lrs: list[tuple[int, float]] = []  # training step of a change, and the highest rate of its groups from then on
    settings: dict[str, Setting] = {}
    cosines: list[float] = []  # of the updates of two consecutive sampled steps: below 0 they undo each other
    site: Site | None = None  # where it was made
    stale: int = 0  # pairs of its steps with the first one's gradients still there at every backward between,
    checked: int = 0  # of so many


class BuiltOptimizer(Struct):
    """One optimizer from its constructor on; it may never have stepped."""

    number: int = 0
    kind: str = ""
    site: Site | None = None
    steps: int = 0
    clears: int = 0  # calls of its zero_grad
    stale: int = 0  # pairs of its steps with the first one's gradients still there at every backward between,
    checked: int = 0  # of so many
    parameters: int = 0
    trainable: int = 0
    in_graph: int = 0
    moved: int = 0


class Scheduler(Struct):
    kind: str = ""
    site: Site | None = None
    function: Site | None = None  # of the script, whose result it multiplies the rate with
    steps: int = 0
    per_batch: int = 0  # of its steps: came one training step after the one before
    settings: dict[str, Setting] = {}


class Parameter(Struct):
    name: str = ""  # as the script reaches it (`model.fc1.weight`); empty where no name is known
    module: str = ""  # class of the module it belongs to
    shape: list[int] = []
    numel: int = 0
    owner: int | None = None  # number of the optimizer that has it and has stepped
    requires: bool = True
    seen: int = 0  # sampled optimizer steps in which it was looked at,
    none: int = 0  # of these: without a gradient,
    zero: int = 0  # and with one of nothing but zeros
    in_graph: int = 0  # sampled losses whose graph ends in it
    beside: bool = False  # in the first of them: in a branch of its own, not behind the loss's last layer
    grads: list[tuple[int, float]] = []  # training step and norm; the first ones all, later ones thinned
    weights: list[float] = []
    moves: list[tuple[int, float]] = []  # training step and norm of the update
    held: int | None = None  # number of the optimizer, as built, that has it; also of one that never stepped
    fresh: bool = False  # it still has the random weights it began with: no training, no checkpoint
    moved: bool = True  # it is no longer what it was at the first backward pass
    late: int | None = None  # training step from which on losses reach it, and did not before; it has not moved since
    alike: Literal["", "same", "zero"] = ""  # all rows of the matrix were the same at first; or all zero
    still_alike: bool = False
    columns_alike: bool = False  # so are all its columns now: with `x @ w` those are the units
    called: int = 0  # observed steps in which its module was called,
    idle: int = 0  # of these: only while no graph was recorded
    trainable: bool = True  # its requires_grad at the time of writing
    is_parameter: bool = True  # an nn.Parameter, not a plain tensor


class Range(Struct):
    """Of the sums of rows of probabilities."""

    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0


class OutOfReach(Struct):
    """Targets that an activation cannot reach."""

    share: float = 0.0
    floor: float = 0.0  # mean square of what is missed: no loss of squares can come below it


class Targets(Struct):
    """What a loss function got as targets, over the batches read."""

    batches: int = 0
    count: int = 0
    dtype: str = ""
    shape: list[int] = []
    expanded: list[int] = []  # shape before `expand`; empty if there was none
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    sd: float | None = None
    constant: float | None = None  # the loss of the best prediction that is the same for every sample
    integer: bool | None = None  # all are whole numbers; None: not looked at
    ids: str | None = None  # name of a tensor of whole numbers in the training that holds the same
    values: list[float] | None = None  # distinct values, where they are whole and few
    beyond: dict[str, OutOfReach] = {}  # by activation: relu, sigmoid, tanh; scaled: what the head is `scaled` from
    classes: int | None = None
    majority: float | None = None
    minority: float | None = None
    of: int | None = None  # the most frequent class
    rows: Range | None = None  # sums of the rows, where the targets are probabilities
    negative: bool = False
    floor: float | None = None  # no prediction can bring the loss below this
    mixed: float | None = None  # variance within a batch, compared with that of all: 1 where batches are well mixed,
    mixed_batches: int = 0  # over so many,
    mixed_size: float = 0.0  # of so many targets each


class Predictions(Struct):
    """What a loss function got as predictions, over the batches read."""

    min: float | None = None
    max: float | None = None
    mean: float | None = None
    sd: float | None = None
    recent: int = 0  # batches of the later half of the run in which classes were counted,
    samples: int = 0  # and their samples;
    top: int | None = None  # the class predicted most often,
    share: float | None = None  # and its share
    rows: Range | None = None  # sums of exp(row): 1 where the loss gets log-probabilities
    width: int = 0  # numbers in such a row, where that is read of sequences


class LossHead(Struct):
    """The loss function at the end of a graph, and what it got."""

    op: LossOp
    times: int = 0
    site: Site | None = None  # the line that computes it
    called: Site | None = None  # the line that calls backward: that of the loss it belongs to
    shape: list[int] = []  # of what the loss was computed on
    dim: int | None = None
    after: ActivationKind | Literal[""] = ""  # the activation right in front of the loss
    after_dim: int | None = None
    after_shape: list[int] = []
    scaled: ActivationKind | Literal[""] = ""  # a bounded activation in front of it, times numbers that do not learn
    broadcast: tuple[list[int], list[int]] | None = None  # shape of the prediction, and the larger one it got
    bare: bool = False  # the loss is the plain mean of this function, comparable with what targets alone give
    signed: bool = False  # nothing is added between this function and the loss
    weighted: bool = False
    target: Targets = Targets()
    prediction: Predictions = Predictions()


class Activation(Struct):
    """A relu, sigmoid or tanh, by its place in the forward pass."""

    place: int
    kind: ActivationKind
    name: str = ""  # the layer whose output it is applied to
    shape: list[int] = []
    batches: int = 0
    units: int = 0
    dead: int = 0  # units that gave 0 for every sample of all these batches
    zero: float = 0.0
    saturated: float = 0.0  # share of values where the activation is flat (sigmoid of ±5, tanh of ±3)
    late_batches: int = 0  # the last batches, counted for themselves,
    late_dead: int = 0  # and units that gave nothing but 0 in these
    early_saturated: float = 0.0
    late_saturated: float = 0.0
    gated: bool = False  # its result is multiplied with another one
    site: Site | None = None  # where the layer is made


class KeptInList(Struct):
    """A layer that no optimizer has, in a plain list or dict of a module."""

    module: str = ""
    holder: str = ""
    kind: str = ""
    attribute: str = ""
    container: str = ""
    site: Site | None = None


class Stray(Struct):
    """A parameter that only its optimizer still has."""

    shape: list[int] = []
    numel: int = 0


class Mode(Struct):
    """How the dropouts and batch norms of a trained module were set in one observed step."""

    step: int = 0
    training: bool = True
    idle: int = 0  # regularizing modules in eval mode,
    of: int = 0  # of so many
    never_updated: int = 0  # of the idle ones: norms whose statistics are what they are before the first batch
    kinds: list[str] = []  # classes of the idle ones
    frozen: int = 0  # parameters of the module without requires_grad


class GraphCut(Struct):
    """Where the graph ends between two modules."""

    lost: list[str] = []  # modules whose parameters the loss does not reach
    parameters: int = 0
    training: bool = True
    begins: str = ""  # the last module with a graph,
    ends: str = ""  # and the first that gets its values without one; "the loss" if there is none
    op: str = ""  # the call that ends the graph: detach, numpy, item, no_grad …
    site: Site | None = None
    dropped: bool = False  # the result of `op`, or of the module where that is empty, is not used for anything
    proven: int = 0  # 2: the same values were seen on both sides; 1: what was called between fits; 0: neither
    step: int = 0
    times: int = 0
    by_hand: int = 0  # observed steps; of weights that the script itself updates, if they get a gradient


class StateCut(Struct):
    """Calls of one layer in a step, each given without its graph what came of the one before."""

    layer: str = ""
    calls: int = 0
    op: str = ""  # the call that ends the graph; empty: not seen
    site: Site | None = None
    step: int = 0


TermOp = Literal["", "autograd.grad", "data", "detach", "tensor"]


class TermCut(Struct):
    """A term of the loss that is made of what the model computes, and has no graph in any loss looked at."""

    term: str = ""
    op: TermOp = ""  # what made it so, at `site`
    site: Site | None = None
    loss: Site | None = None  # where it is added
    seen: int = 0  # losses looked at


TermEnd = Literal["written", "zero", "limit"]
"""What was chosen was written there; or is 0, where a distance has no slope; or all of it lies beyond a limit."""


class DeadTerm(Struct):
    """An operation between the loss and the layers at which a gradient arrives, and leaves it as all zeros, each time
    it was looked at."""

    operation: str = ""
    kind: TermEnd = "written"
    choice: str = ""  # the operation that chooses
    path: list[int] = []
    site: Site | None = None
    sought: bool = False  # its line was looked for, in the step after
    seen: int = 0  # backward passes


class FlatOperation(Struct):
    """An operation whose slope is 0 everywhere, which parts of the model are behind."""

    operation: str = ""
    shape: list[int] = []  # of its result
    lost: list[str] = []  # parameters that the loss reaches only through it,
    other_ways: bool = False  # or by other ways too
    site: Site | None = None

    @property
    def over_one_element(self) -> bool:
        """A softmax: its slope is 0 for want of others, not by what it computes."""
        return self.operation in ("softmax", "log_softmax")


Lost = Literal["dropped", "rebound", "copy", "used_up"]
"""Never used; given to the variable of a loop; written into a copy; made in a loop over an iterator at its end."""


class LostUpdate(Struct):
    """A line that computes new weights, and no weight gets them."""

    site: Site
    how: Lost
    name: str = ""  # of the iterator that is used up; `site`: where it gets its value
    loop: int = 0  # line of the loop that goes through it


class StillCopy(Struct):
    """A network that a line is meant to bring nearer to the one that learns, and that stays what it was."""

    site: Site  # gives the new weights to the variable of a loop
    name: str = ""
    other: str = ""  # the one that learns; empty where its name is not known
    parameters: int = 0
    since: int = 0  # training step from which on it was seen to stay so


class Torn(Struct):
    """An array that was given another shape, so that its axes do not mean what they did before."""

    how: Literal[
        "view",  # of memory that was known with these sizes in another order
        "reshaped",  # its own numbers say that they were in another order
        "mixed",  # the same in the model, of a batch: its samples are mixed
        "backwards",  # returns that are computed from the last one on, and were not turned round
        "lanes",  # sequences that a model is to continue go on in each other, not in themselves
    ]
    shape: list[int] = []  # its own; -1: not known
    before: list[int] = []
    own: float = 0.0  # nats that its neighbours say about each other (of sequences: what comes before),
    other: float = 0.0  # and those of the shape before (of sequences: the one beside it)
    pairs: int = 0
    site: Site | None = None


class Learning(Record):
    """Everything measured of how one process trains; each one is the whole, the latest is all a rule needs."""

    steps: int = 0
    backwards: int = 0
    losses: list[Loss] = []
    optimizers: list[Optimizer] = []
    built: list[BuiltOptimizer] = []
    schedulers: list[Scheduler] = []
    parameters: list[Parameter] = []
    heads: list[LossHead] = []
    activations: list[Activation] = []
    clears: int = 0  # calls of zero_grad of any optimizer
    clips: Clips | None = None
    scaler: Scaler | None = None
    births: list[Birth] = []
    spikes: list[Spike] = []
    steep: Operation | None = None  # the last operation with a NaN or Inf slope though the loss was finite
    flat: FlatOperation | None = None
    kept_in: list[KeptInList] = []
    strays: list[Stray] = []
    first_weights: Site | None = None  # a line that gives weights one value each, where all rows began alike
    observed: int = 0  # steps watched from their modules
    modes: dict[str, list[Mode]] = {}  # by root module
    cut: GraphCut | None = None
    state_cut: StateCut | None = None
    term_cut: TermCut | None = None
    dead_term: DeadTerm | None = None
    lost_update: LostUpdate | None = None  # looked for where nothing that gets gradients changes
    still_copy: StillCopy | None = None
    torn: Torn | None = None
    passing: int = 0  # tensors that losses had gradients for and that are gone: inputs, weights made anew each time
    leaf_losses: int = 0  # backward calls on a leaf tensor with requires_grad
    eval_site: Site | None = None  # a line that calls eval(), where a root module was last seen in eval mode
    compiled: bool = False
    on_gpu: bool = False
    cost: float = 0.0  # seconds of the training's own time that all measuring took
