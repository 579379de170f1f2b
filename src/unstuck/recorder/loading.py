"""Loaders as every probe knows them, and the samples that their last batches were made of."""

from __future__ import annotations

from _weakref import ref
from itertools import count
from time import monotonic_ns
from typing import TypeVar

from . import flight, lengths, user_code
from .objects import Own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypedDict

    from .records import Site
    from .records.numerics import DrawnBatch

    class LoaderAbout(TypedDict):
        """Fields of records.loaders.LoaderState."""

        number: int
        length: int | None
        iterable: bool
        workers: int
        loaders: int
        passes: int
        site: Site | None
        library: bool
        step: int
        trained: int


KEPT = 192  # batches whose indices are remembered: more than are in flight
FEW, ELEMENTS = 16, 1 << 18  # … but no fewer, and no more samples in all than these
MANY = 64  # loaders that are known at one time
MOST_AHEAD = 2
SUSPECT = 2_500_000_000  # nanoseconds of waiting after which it is first told
T = TypeVar("T")


class Loading:
    """One loader. One made anew at the same line, when the one before is gone, carries on what was known of that."""

    __slots__ = (
        "ahead", "backwards", "begun", "drawn", "ended", "first", "indices", "iterable", "length", "loader",
        "loaders", "longest", "look_at", "look_by", "number", "oldest", "opened", "opening", "passes", "pickled",
        "pickling", "since", "site", "starting", "starts", "steps", "tell_at", "trained", "until", "waited", "workers",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.loader: Callable[[], Any] = int
        self.site: Site | None = None
        """Where the present pass was begun."""
        self.length: int | None = None
        self.iterable = False
        self.workers = 0
        self.loaders = 0
        """So many loaders were this one, one after another."""
        self.first = monotonic_ns()
        self.passes = 0
        self.ended = True
        """The last pass came to its own end."""
        self.steps = 0
        """Training steps made when the present pass began."""
        self.trained = 0
        """Training steps made in passes that have ended."""
        self.indices: dict[int, Any] = {}
        """By number in the pass: what the last batches were made of,"""
        self.oldest = 0
        """from this one on."""
        self.backwards = 0
        """Backward passes made when the present pass began."""
        self.ahead = 0
        """Batches that a library draws before it hands out the one that is trained on."""
        # Waiting for batches, in nanoseconds; noted by the hook itself at every batch but the first of a pass.
        self.waited = self.longest = self.drawn = 0
        self.until = 0
        """When a batch was looked at last;"""
        self.look_at, self.look_by = 1, 0
        """the next is the first with this number in its pass, or that comes after this time."""
        self.tell_at = SUSPECT
        """How long must have been waited for the next telling; the probe of the waits sets it."""
        # The first batch of a pass is made while nothing else runs: that wait is a cost of beginning.
        self.opened = 0
        """What making the iterator of the present pass took;"""
        self.opening = 0
        """of all together. The probe of the passes keeps these:"""
        self.pickled = self.pickling = 0
        """bytes of the largest pickle that a worker was started with, and the time for all."""
        self.since = self.begun = 0
        """When the first batch of all came, and how long that was waited for."""
        self.starts = self.starting = 0
        """Passes after the first, and what beginning them took."""

    def trains(self) -> bool:
        """Steps are made on what it gives, or none are made at all: it is not a validation."""
        return not flight.steps() or bool(self.trained) or flight.steps() > self.steps

    def given(self) -> int:
        """Batches so far, of all passes."""
        return self.drawn + self.starts + bool(self.since)

    def about(self) -> LoaderAbout:
        """What every record about a loader says."""
        return {
            "number": self.number,
            "length": self.length,
            "iterable": self.iterable,
            "workers": self.workers,
            "loaders": self.loaders,
            "passes": self.passes,
            "site": self.site,
            "library": self.site is not None and not user_code.is_user_file(self.site[0]),
            "step": flight.steps(),
            "trained": flight.steps() - self.steps,
        }


class ByLoader(dict[int, T]):
    """What a probe keeps of each loader, by its number; made when first asked for. Of too many the oldest goes."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __missing__(self, number: int) -> T:
        if len(self) >= MANY:
            del self[next(iter(self))]
        made = self[number] = self._make()
        return made


class Loadings:
    """All loaders of this process."""

    __slots__ = ("_known", "_numbers", "latest", "other")

    def __init__(self) -> None:
        self._numbers = count()  # a number is for good: the place of a loader in memory may be taken by another
        self.forget()

    def forget(self) -> None:
        """In a forked child: the loaders are its parent's."""
        self._known: dict[int, Loading] = {}
        self.latest: tuple[Loading, Callable[[], Any], int] | None = None
        """The loader that gave out a batch last, its iterator, and the batches it had given before that one's pass;"""
        self.other: tuple[Loading, Callable[[], Any], int] | None = None
        """another one before it, which a step may use as well."""

    def of(self, loader: Any, site: Site | None) -> tuple[Loading, bool]:
        """The loader's, and whether the loader is new."""
        known = self._known.get(id(loader))
        if known is not None and known.loader() is loader:
            return known, False
        gone = [each for each in set(self._known.values()) if each.loader() is None and each.site == site]
        known = gone[0] if gone else Loading(next(self._numbers))
        for key in [key for key, each in self._known.items() if each is known]:
            del self._known[key]
        if len(self._known) >= MANY:
            for key in [key for key, each in self._known.items() if each.loader() is None]:
                del self._known[key]
        known.loader, known.site = ref(loader), site
        known.loaders += 1
        known.length, known.iterable = lengths.loader_length(loader), lengths.is_iterable(loader)
        known.workers = sum(_workers_in(part) for part in lengths.parts(loader))
        self._known[id(loader)] = known
        return known, True

    def all(self) -> list[Loading]:
        return list({id(each): each for each in self._known.values()}.values())

    def opened(self, loading: Loading, iterator: Any) -> None:
        """A pass begins."""
        if self.latest is None or self.latest[0] is not loading:
            self.other = self.latest
        self.latest = loading, ref(iterator), loading.given()

    def in_use(self) -> Loading | None:
        """The loader whose pass began last."""
        return None if self.latest is None else self.latest[0]

    def batches(self) -> list[DrawnBatch]:
        """The last batch handed out, and the samples that made it up. Two, if a step uses two loaders."""
        from .records.numerics import DrawnBatch

        found: list[DrawnBatch] = []
        for known, living, before in [each for each in (self.latest, self.other) if each is not None]:
            iterator = living()
            if iterator is None and known.ended:
                continue
            # An exception on its way out ends the iterator.
            number = _handed_out(iterator) if iterator is not None else known.given() - before - 1
            number -= 0 if known.ended else known.ahead  # at its end the last one is handed out after all
            indices: Any = known.indices.get(number)
            if number < 0:
                continue
            listed = list(indices) if _is_batch(indices) else None
            plain = listed is not None and all(type(index) is int for index in listed)
            size = len(listed) if listed is not None else None
            found.append(DrawnBatch(number=number, size=size, indices=listed if plain else None))
        return found


def trim(loading: Loading) -> None:
    """Forget what older batches were made of; of large ones sooner."""
    indices = loading.indices
    if len(indices) <= FEW:
        return
    newest = loading.oldest + len(indices) - 1
    latest: Any = indices.get(newest)
    size = len(latest) if _is_batch(latest) else 1
    for number in range(loading.oldest, newest - max(FEW, min(KEPT, ELEMENTS // max(1, size)))):
        indices.pop(number, None)
        loading.oldest = number + 1


def note_ahead() -> None:
    """Before a backward pass among the first steps: of a pass's first one it shows how far ahead batches are drawn.
    Only of a library: who writes the loop may draw a batch and leave it out."""
    if _loadings.latest is None or flight.steps() >= flight.FULL_STEPS:
        return
    known, living, _ = _loadings.latest
    iterator = living()
    if iterator is None or known.ended or flight.state[flight.BACKWARDS] - known.backwards != 1:
        return
    ahead = batches_of(iterator) - 1
    if known.site is not None and not user_code.is_user_file(known.site[0]):
        known.ahead = ahead if 0 <= ahead <= MOST_AHEAD else 0


def samples_of(loading: Loading, iterator: Any) -> tuple[Sequence[int] | None, bool]:
    """Those that the batch just handed out was made of, where they are whole numbers; and whether it is no batch but
    one sample."""
    own = Own(iterator)
    if not loading.indices or own.get("_in_order") is False or own.get("_dataset_kind") == 1:
        return None, False
    index = loading.indices.get(_handed_out(iterator))
    if type(index) is int:
        return [index], True
    if type(index) in (list, tuple) and index and type(index[0]) is int:  # the others are looked at where they are read
        return index, False
    return None, False


def batches_of(iterator: Any) -> int:
    """That its present pass has given."""
    return int(Own(iterator).get("_num_yielded", 0))


def workers_of(iterator: Any) -> list[int]:
    return [worker.pid for worker in Own(iterator).get("_workers") or ()]


def _workers_in(part: Own) -> int:
    """Processes that a loader, or one of torchdata's nodes, starts."""
    workers = part.get("num_workers")
    return workers if type(workers) is int and part.get("method") != "thread" else 0


def has_workers(iterator: Any) -> bool:
    """Its batches are made by other processes."""
    return "_rcvd_idx" in Own(iterator)


def dataset_of(iterator: Any) -> Any:
    """The loader itself may be gone by now."""
    return Own(iterator).get("_dataset")


def dataset_of_fetcher(fetcher: Any) -> Any:
    """Where our healing loader stands in its place, the one behind it."""
    return fetcher.__dict__.get("_unstuck_dataset", fetcher.dataset)


def _handed_out(iterator: Any) -> int:
    """Number, in the order in which indices are drawn, of the batch handed out last."""
    own = Own(iterator)
    return int(own["_rcvd_idx"] if "_rcvd_idx" in own else own.get("_num_yielded", 0)) - 1


def _is_batch(index: Any) -> bool:
    return type(index) in (list, tuple)


_loadings = Loadings()
of, everything, opened, in_use, batches, forget = (
    _loadings.of, _loadings.all, _loadings.opened, _loadings.in_use, _loadings.batches, _loadings.forget
)  # fmt: skip
