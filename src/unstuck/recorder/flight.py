"""The flight file from inside: allocated in full, mapped, and written word by word without locks."""

from __future__ import annotations

import mmap
import os
import sys
from time import monotonic_ns, process_time_ns

from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_scrap = memoryview(bytearray(at.SIZE)).cast("q")
words = _scrap  # until a file is there
path = ""
recording = False
_map: mmap.mmap | None = None
# All maps, for good: dropping one closes its descriptor, and the number may be the user's by then.
_maps: list[mmap.mmap] = []
_folder = ""
FULL, PROBED, STEPS, DUE, WATCHED, SIZE, BACKWARDS, OURS, CLOSE, SKIPPED, LEFT = range(11)
state = [1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0]
"""The few numbers that the hooks of a step share.

FULL: this step is sampled, its durations are counted. PROBED: and probes hear of it. STEPS: steps made. DUE: the step
at whose end `turn` is to be called. WATCHED: probes that want to know when batches are asked for, a bit each. SIZE:
elements of the batch in work, where it was looked at. BACKWARDS: backward passes made. OURS: nanoseconds of processor
time that our probes took in this step. CLOSE: backward passes are looked at closely. SKIPPED: losses whose number has
one of these bits are not read. LEFT: the hooks rest, for so many steps."""
_counts = [0] * (len(at.KINDS) * at.KIND_WORDS)
_since = monotonic_ns()
_phase = at.START
_longest = [0] * len(at.KINDS)
_parts = [0] * len(at.PHASES)  # nanoseconds in each phase so far
_parts_before = list(_parts)
_seams = 0
_step_began = _since
_cpu_before = 0
_weight = 1
_sample_at = _sampled = 0
FULL_STEPS = 64  # so many at first
OFTEN, SELDOM = 31, 255  # then one in thirty-two, and one in 256, on average
SHORT, MANY_STEPS = 2_000_000, 8192  # … where steps are shorter than these nanoseconds, after so many
SLOW = 20_000_000  # nanoseconds: a step that takes so long can well bear being sampled


_followers: list[Callable[[memoryview[int]], object]] = []


def follow(take: Callable[[memoryview[int]], object]) -> None:
    """Have it called with the words, now and whenever they change: a hook that is hot keeps them at hand."""
    _followers.append(take)
    take(words)


def _take_up(new: memoryview[int]) -> None:
    global words
    words = new
    for take in _followers:
        take(new)


def steps() -> int:
    """Training steps made."""
    if state[LEFT]:
        settle()
    return state[STEPS]


def settle() -> None:
    """Count the steps that were made while the hooks rest."""
    sys.modules[__package__ + ".resting"].settle()


def full() -> bool:
    """The present step is sampled, and probes hear of it."""
    return bool(state[PROBED])


def identity() -> tuple[int, int, int]:
    """Start time in clock ticks since boot, with the pid a name for good; where code and stack are, until an exec."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[19]), int(fields[23]), int(fields[25])


def name_stem(folder: str) -> str:
    """Where this process's files go, less their endings; with a number after an exec, which changes no name."""
    try:
        ticks = identity()[0]
    except OSError:  # no /proc: no flight file either, but a place to say so
        ticks = 0
    stem = first = os.path.join(folder, f"{os.getpid()}-{ticks}")
    number = 0
    while os.path.exists(stem + at.FLIGHT):
        number += 1
        stem = f"{first}.{number}"
    return stem


def let_go() -> None:
    """Write into memory of our own: a forked child must not write into its parent's file."""
    global path, recording, _map
    path, recording, _map = "", False, None
    _take_up(_scrap)


def open_file(folder: str, forked: bool) -> str:
    """Create this process's flight file. Raises OSError where it cannot be had whole."""
    global path, recording, _map, _folder, _since, _phase, _step_began, _seams, _weight, _sample_at, _sampled
    recording = False
    _take_up(_scrap)  # the parent's map stays until there is another: a failure is told there
    pid, (ticks, code, stack) = os.getpid(), identity()
    stem = name_stem(folder)
    handle = os.open(stem + at.FLIGHT, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, at.SIZE)  # a store into a sparse page on a full disk would be a SIGBUS
        new_map = _map_high(handle)
    except BaseException:
        os.unlink(stem + at.FLIGHT)
        raise
    finally:
        os.close(handle)
    new = memoryview(new_map).cast("q")
    now = monotonic_ns()
    for word in (at.W_SAMPLE, at.W_POSITION, at.W_WORKER, at.W_RANK):
        new[word] = at.NONE
    new[at.W_VERSION], new[at.W_PID], new[at.W_PPID] = at.VERSION, pid, os.getppid()
    new[at.W_START_TICKS], new[at.W_BEGAN], new[at.W_SINCE + at.START] = ticks, now, now
    new[at.W_FORKED], new[at.W_THREAD], new[at.W_CODE], new[at.W_STACK] = int(forked), pid, code, stack
    new[at.W_MAGIC] = at.MAGIC  # last: a reader takes the file for whole from here on
    path, _map, _folder, recording = stem, new_map, folder, True
    _take_up(new)
    _since, _phase, _step_began = now, at.START, now
    _counts[:] = [0] * len(_counts)
    _longest[:] = [0] * len(_longest)
    _parts[:] = [0] * len(_parts)
    _parts_before[:] = _parts
    _seams, _weight, _sample_at, _sampled = 0, 1, 0, 0
    state[:] = [0] * len(state)
    state[FULL] = state[PROBED] = state[CLOSE] = 1
    return stem


def _map_high(handle: int) -> mmap.mmap:
    """Map it. The map keeps a descriptor of its own, the lowest free one: here that is a high one, so that the
    user's own keep the numbers they would have had. Nobody else runs yet: a process begins, or was just forked."""
    below: list[int] = []
    try:
        while not below or below[-1] < at.HIGH:
            below.append(os.dup(handle))
    except OSError:  # a low limit: any number will do
        if below:
            os.close(below.pop())
    try:
        _maps.append(mmap.mmap(handle, at.SIZE))
        return _maps[-1]
    finally:
        for number in below:
            os.close(number)


def enter(phase: int) -> None:
    """Begin a phase: one store. That the word changes is the sign that something moved."""
    now = monotonic_ns()
    words[at.W_SINCE + phase] = now
    if state[FULL]:
        account(now, phase)


def pass_began() -> None:
    """A pass over a loader begins; it counts as an epoch once a step is made in it."""
    w = words
    if state[STEPS] > w[at.W_PASS_STEP]:
        w[at.W_EPOCH] += 1
    w[at.W_PASS_STEP], w[at.W_LOADERS], w[at.W_BATCH] = state[STEPS], w[at.W_LOADERS] + 1, 0


def account(now: int, phase: int) -> None:
    """Count how long the phase that ends has taken. Only in full steps: all at first, then one in thirty-two."""
    global _since, _phase, _seams
    took = now - _since
    count(_phase, took, _weight)
    total = _parts[_phase] = _parts[_phase] + took * _weight
    words[at.HISTOGRAMS + _phase * at.KIND_WORDS + at.TOTAL] = total
    _seams += 1
    words[at.W_PROGRESS] = _seams
    _since, _phase = now, phase


def stand_for(phases: int, since: int) -> None:
    """In a worker: the phase that ends began then, and stands, with the one that comes, for so many."""
    global _weight, _since
    _weight, _since = phases, since or _since


def count(kind: int, took: int, times: int = 1) -> None:
    """Count `times` durations of `took` nanoseconds each."""
    slot = kind * at.KIND_WORDS + took.bit_length()
    w = words
    _counts[slot] = w[at.HISTOGRAMS + slot] = _counts[slot] + times
    if took > _longest[kind]:
        _longest[kind] = w[at.HISTOGRAMS + kind * at.KIND_WORDS + at.LONGEST] = took


def turn(again: bool | None = False) -> None:
    """A step has ended that was sampled, or after which one is; `again`: the next one is sampled, too."""
    global _weight, _since, _phase, _step_began, _cpu_before, _sample_at, _sampled
    now, cpu = monotonic_ns(), process_time_ns()
    words[at.W_SINCE + at.BETWEEN], words[at.W_STEP] = now, state[STEPS]
    was_full, made = state[FULL], state[STEPS]
    if was_full:
        account(now, at.BETWEEN)
        place = at.RING + _ring_place() * at.STEP_WORDS
        words[place], words[place + 1] = now, now - _step_began
        for offset, phase in enumerate((at.DATA, at.BACKWARD, at.OPTIMIZER), 2):
            words[place + offset] = (_parts[phase] - _parts_before[phase]) // _weight
        words[place + 5] = max(0, cpu - _cpu_before - state[OURS])
        words[place + 6], words[place + 7] = state[SIZE], made
        few = made > MANY_STEPS and now - _step_began - state[OURS] < SHORT
        _sample_at = made + _distance(made, SELDOM if few else OFTEN)
    goes_on = was_full and (again or now - _step_began >= SLOW)
    state[FULL] = int(made < FULL_STEPS or goes_on or made >= _sample_at)
    state[DUE] = 0 if state[FULL] else _sample_at
    if state[FULL]:  # it stands for those since the last one as well
        _weight, _sampled = 1 if goes_on or made < FULL_STEPS else made + 1 - _sampled, made + 1
    _since, _phase, _step_began, _cpu_before, state[SIZE], state[OURS] = now, at.BETWEEN, now, cpu, 0, 0
    _parts_before[:] = _parts


def fetched(began: int, sample: int, samples: int, failed: bool) -> None:
    """In a worker: note a batch that it made."""
    now, place = monotonic_ns(), at.RING + _ring_place() * at.STEP_WORDS
    words[place], words[place + 1], words[place + 2] = now, now - began, sample
    words[place + 3], words[place + 4] = samples, int(failed)


def _distance(made: int, often: int) -> int:
    """To the next sampled step: half to one and a half times as far as on average. At even distances, and passes that
    are as long, each would be the first of its pass, which starts the workers."""
    return (often + 1) // 2 + (made * 2654435769 >> 20 & often)


def sample_due() -> bool:
    """The next step is to be sampled."""
    return state[STEPS] >= _sample_at


def _ring_place() -> int:
    words[at.W_RING] += 1
    return (words[at.W_RING] - 1) % at.RING_STEPS


def write_text(length_word: int, offset: int, size: int, text: str | bytes) -> None:
    """Put a text beside the words; `length_word` says how much of it counts."""
    raw = text.encode("utf-8", "replace")[:size] if isinstance(text, str) else bytes(text)[:size]
    if recording:
        _map[offset : offset + len(raw)] = raw  # type: ignore[index]  # there is one while recording
        words[length_word] = len(raw)


def text(length_word: int, offset: int, size: int) -> str:
    """A text put there by `write_text`."""
    if not recording:
        return ""
    return bytes(_map[offset : offset + min(words[length_word], size)]).decode("utf-8", "replace")  # type: ignore[index]


def write_last(line: bytes) -> bool:
    """A fact that could not be written to its file. False: there is no room for it here either."""
    place = words[at.W_LAST_LENGTH]
    if not recording or place + len(line) > at.LAST_SIZE:
        return False
    _map[at.LAST_AT + place : at.LAST_AT + place + len(line)] = line  # type: ignore[index]
    words[at.W_LAST_LENGTH] = place + len(line)
    return True


def write_off(probe: str, why: str) -> None:
    """The last resort for a probe that is off: this needs no room on the disk. In a forked child that has no file
    of its own it goes into its parent's."""
    if _map is None:
        return
    length = memoryview(_map).cast("q")[at.W_OFF_LENGTH : at.W_OFF_LENGTH + 1]
    place = at.OFF_AT + length[0]
    name = (probe + "\t").encode("utf-8", "replace")
    line = name + why.replace("\n", " ").encode("utf-8", "replace")[:100] + b"\n"
    if name not in _map[at.OFF_AT : place] and length[0] + len(line) <= at.OFF_SIZE:
        _map[place : place + len(line)] = line
        length[0] += len(line)
