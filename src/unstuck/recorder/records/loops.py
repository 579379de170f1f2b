"""The loops around a training step at one moment, conditions with their values; and what grows from step to step."""

from __future__ import annotations

from typing import Literal

from . import Record, Site, Struct

GrowerKind = Literal[
    "container",
    "cycle",  # what itertools.cycle keeps of its first pass
    "hooks",  # of a module
    "graph",  # the autograd graph of one tensor
    "tensor",  # one that is joined with more each time
    "cache",  # of a function under functools.lru_cache
]


LibraryName = Literal["lightning", "transformers", "accelerate", "ignite", "fastai"]


class LibraryLoop(Record):
    """The library that writes the training loop, and what it calls this moment. None: it does not count that."""

    library: LibraryName
    version: str = ""
    step: int = 0  # training steps by our count, at which
    epoch: int | None = None  # the library's own are these
    global_step: int | None = None
    epochs: int | None = None  # that it is to train for
    metrics: list[str] = []  # names under which values were logged, as far as seen


class EventFile(Record):
    """A file that the training writes for TensorBoard."""

    path: str


class NotebookCell(Record):
    """A cell of a notebook, and the name under which it was compiled. Run again unchanged, it has the same name."""

    file: str
    number: int  # as in `In [3]`


class Value(Struct):
    """What an expression stands for, as far as it can be read without running anything."""

    kind: Literal["number", "bool", "text", "none", "object", "unknown"] = "unknown"
    text: str = ""  # as Python would show it; of an object the name of its type
    number: int | float | None = None  # NaN and infinity are numbers too


class Limits(Struct):
    """Beyond which a number never goes, and what holds it."""

    least: float | None = None
    most: float | None = None
    by: str = ""


class Side(Struct):
    """One side of a comparison, or a name, with its value."""

    text: str = ""
    value: Value = Value()
    limits: Limits | None = None


class Comparison(Struct):
    left: Side = Side()
    op: Literal["<", "<=", ">", ">=", "==", "!=", "is", "is not"] = "=="
    right: Side = Side()
    difference: list[Side] = []  # of `a - b < c`: a and b
    apart: bool = False  # it is `abs(a - b) < c`
    nan_by: list[str] = []  # infinite names, and those that are NaN, that make a side NaN whatever else is in it
    clock: bool = False  # a clock is read in it, in seconds

    def sides(self, flipped: bool = False) -> tuple[Side, Side]:
        return (self.right, self.left) if flipped else (self.left, self.right)


class Every(Struct):
    """`step % 50 == 0`: true once in so many rounds."""

    counter: Side = Side()
    rounds: int = 0


class Condition(Struct):
    """A condition or a piece of one, as written, with its present value."""

    text: str = ""
    kind: Literal[
        "and", "or", "not",
        "call",  # of a function of the user's: `parts` has the one expression that it returns
        "compare", "truth",
        "other",  # no expression: an `except`, a `case`, more than is read
    ] = "other"  # fmt: skip
    value: bool | None = None  # None: not known
    parts: list[Condition] = []
    compared: Comparison | None = None
    tested: Value | None = None  # of `truth`: the value itself
    every: Every | None = None  # of `compare` and `truth`, where it is about a remainder
    names: list[str] = []  # that it reads, as written
    asks: list[str] = []  # whose methods it calls
    calls: bool = False  # it calls something
    wanted: bool = True  # on the way to a statement: the value that leads there

    @property
    def holds(self) -> bool | None:
        return None if self.value is None else self.value is self.wanted


class WayOut(Struct):
    """A statement that leaves the loop, and the conditions on the way to it."""

    line: int = 0
    kind: Literal["break", "return", "raise", "exit"] = "break"
    guards: list[Condition] = []

    @property
    def met(self) -> bool | None:
        """All of the conditions hold."""
        held = [guard.holds for guard in self.guards]
        return False if False in held else None if None in held else True


class Assignment(Struct):
    """A statement that gives a name a value while the loop runs."""

    line: int = 0
    kind: Literal["constant", "add", "scale", "append", "other"] = "other"
    text: str = ""
    elsewhere: bool = False  # in another function, or in a method of the object's class,
    unread: bool = False  # and nothing is known of when that runs
    guards: list[Condition] = []
    same: bool = False  # it gives the name what it has now, as long as
    reads: list[str] = []  # these are what they are
    measured_from: str = ""  # a print of tensors and modules in `reads`, of which alone it is computed in each round
    sum: bool = False  # of the numbers in `reads`, or of clocks,
    minus: list[str] = []  # where these are subtracted
    clock: bool = False  # a clock is read


class Undone(Struct):
    """A flag that a loop waits for and that is never set at its test, though a statement of each round sets it."""

    name: str = ""
    way: int = 0  # line of the way out that tests it; 0: the loop's own test
    holds: bool = False  # what it comes to at each test
    set: Assignment = Assignment()
    by: Assignment | None = None  # that clears it again before each test; None: what is set is
    on: str = ""  # that of another object, as written
    site: Site | None = None  # of `by`, or of `set` where there is none


class Held(Struct):
    """A loop further out that holds the iterator which a `for` goes through and uses up, and that does nothing to
    renew it: its first round gets everything, the others nothing."""

    name: str = ""  # that it has there
    type: str = ""
    frame: int = 0  # number of the function of the loop further out,
    line: int = 0  # and where that loop begins
    made: Site | None = None  # the line that made it; None: not known


class Iterated(Struct):
    """What a `for` iterates over."""

    text: str = ""
    ends: bool | None = None  # by itself; None: not known
    type: str = ""  # empty: not known
    by_index: bool = False  # by the old protocol: indices from 0 up until IndexError; a length does not end it
    length: int | None = None
    item_site: Site | None = None  # of `by_index`: the `__getitem__`
    maker: Site | None = None  # of what never ends: the line of the user's function that makes it so
    stays_true: str = ""  # the test of a `while` at that line, where its body keeps it true whatever happens
    held: list[Held] = []  # where it can be gone through once only; nearest first


class Counter(Struct):
    """The name that counts the rounds of a `for … in enumerate(…)` or `range(…)`, or of a `while` that adds 1 to it;
    and from where to where."""

    name: str = ""
    least: int = 0
    most: int = 0


class DescribedLoop(Struct):
    kind: Literal["while", "for"] = "while"
    text: str = ""
    first: int = 0  # line of the loop
    header: int = 0  # the last line of its head
    last: int = 0  # the last line of its body
    test: Condition = Condition()  # of a `while`, as the next one
    stays_true: bool = False  # what its body assigns keeps its test true
    iterates: Iterated = Iterated()  # of a `for`, as the next two
    targets: list[Side] = []
    counts: Counter | None = None
    exits: list[WayOut] = []
    assigned: dict[str, list[Assignment]] = {}  # by name that is tested: every statement that changes it
    undone: list[Undone] = []
    accounted: list[str] = []  # attributes and items of these whose every change is known


class Copied(Struct):
    """A `while` of the parent's, whose functions are on the stack of this forked process, tests what only functions
    change that run in such processes, each in its own copy."""

    tested: Side = Side()  # here
    type: str = ""  # of the object that it belongs to,
    owner: str = ""  # as written
    text: str = ""  # of the test,
    holds: bool = False  # and what it would come to here
    loop: Site = ("", 0, "")
    by: str = ""  # the statement that changes it here,
    site: Site = ("", 0, "")  # and where that is


class LoopFrame(Struct):
    """A function of the user's on the stack, and the loops in it around its line, outermost first."""

    file: str = ""
    line: int = 0
    function: str = ""
    number: int = 0  # the same for as long as this call lasts
    generator: bool = False  # whoever draws from it decides
    called_by: int = 0  # of a generator: the number of the function that draws from it
    local: list[str] | None = None  # its own names; None: it is a module
    loops: list[DescribedLoop] = []


class LoopSnapshot(Record):
    """The loops around one moment of the training, innermost function first."""

    step: int = 0
    when: Literal["asked", "early", "died"] = "asked"  # in the first steps, where no loader is used; of an exception
    passes: int = 0  # over any loader, begun so far
    epochs: int = 0  # of these, before the present one, in which steps were made
    backwards: int = 0  # passes through a graph so far
    frames: list[LoopFrame] = []
    copied: list[Copied] = []


class FedBy(Struct):
    """Lines around a training step that make its batch, without a loader."""

    file: str = ""
    function: str = ""
    first: int = 0
    last: int = 0


class Feeding(Record):
    """All of these, outwards from the step."""

    step: int = 0
    lines: list[FedBy] = []


Drawn = Literal["samples", "values"]


class Remade(Struct):
    """Code in a loop that makes the batch of each step, and why that is always the same one."""

    how: Literal[
        "reseeded",  # it seeds its generator each time
        "reset",  # it draws it, and another line of the step seeds the global generator
        "restarted",  # it takes the first element of a new iterator
        "not moved",  # it cuts at a position that nothing moves
    ] = "reseeded"
    call: str = ""  # in the loop
    text: str = ""  # of what does it,
    site: Site | None = None  # and where that is
    drawn: Drawn = "samples"  # by the generator: which samples of the data, or the values themselves


class SameGiven(Record):
    """Where no loader is used: the model got batches with the same contents, each made anew."""

    site: Site | None = None  # that calls the model
    same: int = 0  # in a row, after the first; 0: another one came
    rows: int = 0  # of the batch
    first: int = 0  # step of the first of them
    step: int = 0
    remade: Remade = Remade()


class Grower(Struct):
    """A container, or a tensor's graph, that is longer than at the snapshot before."""

    path: str = ""  # `penalty_history in main`, `self.history of Trainer`
    kind: GrowerKind = "container"
    holds: str = ""  # type of its elements
    graph: bool = False  # its tensors carry an autograd graph
    by_tensor: bool = False  # a dictionary whose keys are tensors, which are equal to themselves alone
    bytes: int = 0  # of an element's own tensors, as sampled, without what their graphs keep
    first: int = 0  # its length when first seen,
    first_step: int = 0  # and at which step
    now: int = 0  # the same of the present
    step: int = 0
    times: int = 0  # snapshots in a row in which it was longer
    capped: bool = False  # it has more than was counted
    hook: bool = False  # it is reached through a hook of a module: activations are kept
    site: Site | None = None  # the statement that fills it


class GrowthSnapshot(Record):
    """What was longer at a request than at the one before; the heaviest first."""

    step: int = 0
    rss: int = 0  # 0: not known
    device: int | None = None  # bytes that torch's allocator has handed out on the GPU; None: none is used
    objects: int = 0  # looked at for this
    seconds: float = 0.0
    growing: list[Grower] = []


class GraphPoint(Struct):
    """One walk through the graph behind the loss."""

    call: int = 0  # of backward, as far as they are counted
    step: int = 0
    nodes: int = 0
    old: int = 0  # nodes that were there at the walk before
    capped: bool = False  # there are more than were counted
    oldest: int = 0  # number of the oldest node


class LossGraph(Record):
    """The graph behind the loss holds nodes of earlier steps, and more of them at each walk."""

    points: list[GraphPoint] = []
    site: Site | None = None  # the line that calls backward
