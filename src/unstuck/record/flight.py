"""The flight file from inside: allocated in full, mapped, and written word by word without locks."""

import mmap
import os
from time import monotonic_ns

from . import layout as at

_scrap = memoryview(bytearray(at.SIZE)).cast("q")
words = _scrap  # until a file is there
path = ""
recording = False
_map = None
_folder = ""
_counts = [0] * (len(at.KINDS) * at.KIND_WORDS)
_since = monotonic_ns()
_phase = at.START
_longest = [0] * len(at.KINDS)
_step_parts = [0] * len(at.PHASES)
_step_began = _since


def start_ticks(pid="self"):
    """Start time of a process in clock ticks since boot: with the pid, its name for good."""
    with open("/proc/%s/stat" % pid, "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def name_stem(folder):
    """Where this process's files go, less their endings."""
    try:
        ticks = start_ticks()
    except OSError:  # no /proc: no flight file either, but a place to say so
        ticks = 0
    return os.path.join(folder, "%d-%d" % (os.getpid(), ticks))


def let_go():
    """Write into memory of our own: a forked child must not write into its parent's file."""
    global words, path, recording, _map
    words, path, recording, _map = _scrap, "", False, None


def open_file(folder, forked):
    """Create this process's flight file. Raises OSError where it cannot be had whole."""
    global words, path, recording, _map, _folder, _since, _phase, _step_began
    words, recording = _scrap, False  # the parent's map stays until there is another: a failure is told there
    pid, ticks = os.getpid(), start_ticks()
    stem = os.path.join(folder, "%d-%d" % (pid, ticks))
    handle = os.open(stem + at.FLIGHT, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, at.SIZE)  # a store into a sparse page on a full disk would be a SIGBUS
        new_map = _map_high(handle)
    except BaseException:
        os.unlink(stem + at.FLIGHT)
        raise
    finally:
        os.close(handle)
    fresh = memoryview(new_map).cast("q")
    now = monotonic_ns()
    for word in (at.W_SAMPLE, at.W_POSITION, at.W_WORKER, at.W_RANK, at.W_OWED):
        fresh[word] = at.NONE
    fresh[at.W_VERSION], fresh[at.W_PID], fresh[at.W_PPID] = at.VERSION, pid, os.getppid()
    fresh[at.W_START_TICKS], fresh[at.W_BEGAN], fresh[at.W_SINCE] = ticks, now, now
    fresh[at.W_FORKED], fresh[at.W_THREAD] = int(forked), pid
    fresh[at.W_MAGIC] = at.MAGIC  # last: a reader takes the file for whole from here on
    words, path, _map, _folder, recording = fresh, stem, new_map, folder, True
    _since, _phase, _step_began = now, at.START, now
    _counts[:] = [0] * len(_counts)
    _longest[:] = [0] * len(_longest)
    _step_parts[:] = [0] * len(_step_parts)
    return stem


def _map_high(handle):
    """Map it. The map keeps a descriptor of its own, the lowest free one: here that is a high one, so that the
    user's own keep the numbers they would have had. Nobody else runs yet: a process begins, or was just forked."""
    below = []
    try:
        while not below or below[-1] < at.HIGH:
            below.append(os.dup(handle))
    except OSError:  # a low limit: any number will do
        os.close(below.pop())
    try:
        return mmap.mmap(handle, at.SIZE)
    finally:
        for number in below:
            os.close(number)


def enter(phase):
    """Leave the present phase, whose duration is counted, and begin another."""
    global _since, _phase
    now = monotonic_ns()
    took = now - _since
    old = _phase
    slot = old * at_KIND_WORDS + took.bit_length()
    w = words
    _counts[slot] = w[at_HISTOGRAMS + slot] = _counts[slot] + 1
    if took > _longest[old]:
        _longest[old] = w[at_HISTOGRAMS + old * at_KIND_WORDS + at_LONGEST] = took
    _step_parts[old] += took
    w[at_W_PHASE] = _phase = phase
    w[at_W_SINCE] = _since = now
    w[at_W_PROGRESS] += 1


def count(kind, took, times=1):
    """Count `times` durations of `took` nanoseconds each."""
    slot = kind * at_KIND_WORDS + took.bit_length()
    w = words
    _counts[slot] = w[at_HISTOGRAMS + slot] = _counts[slot] + times
    if took > _longest[kind]:
        _longest[kind] = w[at_HISTOGRAMS + kind * at_KIND_WORDS + at_LONGEST] = took


def step_ended():
    """One training step is over: it goes into the ring."""
    global _step_began
    now = _since
    w = words
    step = w[at_W_STEP]
    place = at_RING + step % at_RING_STEPS * at_STEP_WORDS
    parts = _step_parts
    w[place] = now
    w[place + 1] = now - _step_began
    w[place + 2], w[place + 3], w[place + 4] = parts[at_DATA], parts[at_BACKWARD], parts[at_OPTIMIZER]
    totals = at_HISTOGRAMS + at_TOTAL
    for phase in (at_DATA, at_BETWEEN, at_BACKWARD, at_OPTIMIZER):
        w[totals + phase * at_KIND_WORDS] += parts[phase]
        parts[phase] = 0
    w[at_W_STEP] = step + 1
    _step_began = now


def write_text(length_word, offset, size, text):
    """Put a text beside the words; `length_word` says how much of it counts."""
    raw = text.encode("utf-8", "replace")[:size] if isinstance(text, str) else bytes(text)[:size]
    if recording:
        _map[offset : offset + len(raw)] = raw
        words[length_word] = len(raw)


def write_off(probe, why):
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


# Plain globals: a lookup through the module would cost a third of `enter`.
at_KIND_WORDS, at_HISTOGRAMS, at_LONGEST, at_TOTAL = at.KIND_WORDS, at.HISTOGRAMS, at.LONGEST, at.TOTAL
at_W_PHASE, at_W_SINCE, at_W_PROGRESS, at_W_STEP = at.W_PHASE, at.W_SINCE, at.W_PROGRESS, at.W_STEP
at_RING, at_RING_STEPS, at_STEP_WORDS = at.RING, at.RING_STEPS, at.STEP_WORDS
at_DATA, at_BETWEEN, at_BACKWARD, at_OPTIMIZER = at.DATA, at.BETWEEN, at.BACKWARD, at.OPTIMIZER
