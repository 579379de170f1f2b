"""Around torch's fetcher, in a worker or in the training's own process: shows which sample is in work, tries a sample
that raises again, leaves it out or puts another in its place."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from time import monotonic_ns
from types import GeneratorType

from .care import COLLATING, FETCHING, NOTHING, PHASE, POSITION, SINCE, UNKNOWN, Care

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MOST_TRACEBACK = 1 << 14  # characters
CANDIDATES = 3  # samples of a batch that cannot be collated with which the others are compared


@dataclass
class Bad:
    """A sample that could not be had. `replaced_by`: the position in its batch of the one that took its place."""

    position: int
    reason: str
    what: str
    traceback: str = ""
    replaced_by: int | None = None


@dataclass
class Order:
    """How the next batch is fetched, besides its indices."""

    without: frozenset[int] = frozenset()
    """Positions that are known to be bad."""
    plain: bool = False
    """Send it without descriptors."""


@dataclass
class Found:
    """What happened while a batch was fetched."""

    bad: list[Bad] = field(default_factory=list)
    consumed: int = 0
    """Of a stream: items taken so far."""


class Stand:
    """In the place of a map-style dataset: fetches from it sample by sample."""

    def __init__(self, care: SampleCare, dataset: Any) -> None:
        self._care, self._dataset = care, dataset

    def fetch(self, key: Any) -> Any:
        return self._dataset[key]

    def __getitem__(self, key: Any) -> Any:
        care = self._care
        care.position = position = care.position + 1
        words = care.words
        words[POSITION] = position
        if care.timed:
            words[SINCE] = monotonic_ns()
        if position in care.order.without:
            return NOTHING
        try:
            return self.fetch(key)
        except Exception as error:
            failed = error
        return care.again(position, key, failed)


class StandForMany(Stand):
    """The same for a dataset that fetches whole batches."""

    def fetch(self, key: Any) -> Any:
        return self._dataset.__getitems__([key])[0]

    def __getitems__(self, keys: list[Any]) -> Any:
        care = self._care
        care.words[POSITION] = UNKNOWN
        care.tick(len(keys))
        if not care.order.without:
            try:
                return self._dataset.__getitems__(keys)
            except Exception:
                if len(keys) == 1 and not care.care.keeps_going:
                    raise
        return [self[key] for key in keys]


class Stream:
    """In the place of an iterator over a dataset. What `skipped` says was handed out by a worker before this one."""

    def __init__(self, care: SampleCare, stream: Iterator[Any], skipped: int) -> None:
        self._care, self._stream, self._skip = care, stream, skipped

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        care = self._care
        while self._skip:
            self._skip -= 1
            care.consumed += 1
            care.tick()
            next(self._stream)
        care.position += 1
        care.words[POSITION] = care.consumed
        care.tick()
        while True:
            care.consumed += 1
            try:
                return next(self._stream)
            except StopIteration:
                raise
            except Exception as error:
                # A generator ends with its first exception: to go on would lose the rest of the stream in silence.
                if not care.care.keeps_going or isinstance(self._stream, GeneratorType):
                    raise
                care.found.bad.append(described(care.consumed - 1, error))


class SampleCare:
    """Of one fetcher. `words` show what is in work; in the training's own process nobody reads them."""

    def __init__(self, care: Care, words: Any, skipped: int = 0) -> None:
        self.care, self.words = care, words
        self.order, self.found = Order(), Found()
        self.position = -1
        self.timed = care.sample_timeout is not None
        self.consumed = 0
        self._skipped = skipped

    def tick(self, samples: int = 1) -> None:
        """Begin the time of a sample; several at once have the time of all of them."""
        if self.care.sample_timeout is not None:
            self.words[SINCE] = monotonic_ns() + int((samples - 1) * self.care.sample_timeout * 1e9)

    def take(self, fetcher: Any, iterable: bool) -> None:
        """Put ourselves between the fetcher and the user's dataset and collate function."""
        self._collate = fetcher.collate_fn
        self._fetcher_fetch = fetcher.fetch
        fetcher._unstuck_dataset = fetcher.dataset  # for the recorder
        fetcher.collate_fn = self._collating if fetcher.auto_collation else self._converting
        fetcher.fetch = self._fetch
        if iterable:
            self.consumed = 0
            fetcher.dataset_iter = Stream(self, fetcher.dataset_iter, self._skipped)
            self._skipped = 0
        else:
            whole = getattr(fetcher.dataset, "__getitems__", None) and fetcher.auto_collation
            fetcher.dataset = self._stand = (StandForMany if whole else Stand)(self, fetcher.dataset)
        self._keys: Any = None

    def _fetch(self, index: Any) -> Any:
        words = self.words
        self.position, self._keys = -1, index
        words[PHASE] = FETCHING
        try:
            return self._fetcher_fetch(index)
        finally:
            self.found.consumed = self.consumed

    # --- samples -------------------------------------------------------------------------------------------

    def again(self, position: int, key: Any, error: Exception) -> Any:
        """A sample raised: once more, as often as is wanted; then it is bad."""
        for _ in range(self.care.retries):
            self.tick()
            try:
                return self._stand.fetch(key)
            except Exception as another:
                error = another
        if not self.care.keeps_going:
            raise error
        self.found.bad.append(described(position, error))
        return NOTHING

    def _replace(self, samples: list[Any]) -> list[Any]:
        """Another sample of the batch, fetched anew, for each that is missing."""
        there = [position for position, sample in enumerate(samples) if sample is not NOTHING]
        missing = [position for position, sample in enumerate(samples) if sample is NOTHING]
        for turn, position in enumerate(missing):
            for offset in range(len(there)):
                other = there[(turn + offset) % len(there)]
                try:
                    self.words[POSITION] = other
                    self.tick()
                    samples[position] = self._stand.fetch(self._keys[other])
                except Exception:
                    continue
                self._note_replaced(position, other)
                break
        return samples

    def _note_replaced(self, position: int, other: int) -> None:
        for bad in self.found.bad:
            if bad.position == position:
                bad.replaced_by = other
                return
        self.found.bad.append(Bad(position, "known", "", replaced_by=other))

    # --- the batch -----------------------------------------------------------------------------------------

    def _converting(self, sample: Any) -> Any:
        return NOTHING if sample is NOTHING else self._put_together(sample)

    def _collating(self, samples: Any) -> Any:
        positions: Sequence[int] = range(len(samples))
        if self.order.without or self.found.bad:
            samples = list(samples)
            if self.care.on_bad_sample == "replace" and self._keys is not None:
                samples = self._replace(samples)
            positions = [position for position, sample in enumerate(samples) if sample is not NOTHING]
            samples = [sample for sample in samples if sample is not NOTHING]
            if not samples:
                return NOTHING
        try:
            return self._put_together(samples)
        except Exception as error:
            if not self.care.keeps_going:
                raise
            fitting = self._fitting(samples)
            if len(fitting) * 2 <= len(samples):  # no telling which of them are the odd ones
                raise
            batch = self._put_together([samples[each] for each in fitting])
            odd = [position for each, position in enumerate(positions) if each not in fitting]
            self.found.bad += [described(position, error, "collate") for position in odd]
            return batch

    def _fitting(self, samples: Any) -> list[int]:
        """Those that can be collated with one another, by trying pairs."""
        best: list[int] = []
        for first in range(min(CANDIDATES, len(samples))):
            fitting = [each for each in range(len(samples)) if self._fit(samples, first, each)]
            best = max(best, fitting, key=len)
        return best

    def _fit(self, samples: Any, one: int, other: int) -> bool:
        try:
            self._collate([samples[one], samples[other]])
        except Exception:
            return False
        return True

    def _put_together(self, samples: Any) -> Any:
        self.words[PHASE] = COLLATING
        self.tick()
        return self._collate(samples)


def described(position: int, error: BaseException, reason: str = "raised") -> Bad:
    try:
        said = str(error)
    except Exception:
        said = "(its message cannot be shown)"
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:  # from the user's own code on
        trace = trace.tb_next
    lines = "".join(traceback.format_exception(type(error), error, trace))
    return Bad(position, reason, f"{type(error).__name__}: {said}".strip(": "), lines[-MOST_TRACEBACK:])
