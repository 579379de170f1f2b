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
_maps = []  # all, for good: dropping one closes its descriptor, and the number may be the user's by then
_folder = ""
_counts = [0] * (len(at.KINDS) * at.KIND_WORDS)
_since = monotonic_ns()
_phase = at.START
_longest = [0] * len(at.KINDS)
_parts = [0] * (len(at.PHASES) - 1)  # nanoseconds in each phase so far
_seams = _steps = 0
_step_began = _since
_data_before = _backward_before = _optimizer_before = 0
SEAMS_COUNTED = 300


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
    global _seams, _steps, _data_before, _backward_before, _optimizer_before
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
    _parts[:] = [0] * len(_parts)
    _seams = _steps = _data_before = _backward_before = _optimizer_before = 0
    return stem


def _map_high(handle):
    """Map it. The map keeps a descriptor of its own, the lowest free one: here that is a high one, so that the
    user's own keep the numbers they would have had. Nobody else runs yet: a process begins, or was just forked."""
    below = []
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


def enter(phase):
    """Leave the present phase and begin another. That `since` changes is the sign that something moved.

    Durations go into the histograms every seventh time (six seams make a step, so all kinds get their turn), as
    seven each; at first, and when longer than any before, always.
    """
    global _since, _phase, _seams
    now = monotonic_ns()
    took = now - _since
    old = _phase
    _parts[old] += took
    w = words
    w[at_W_PHASE] = _phase = phase
    w[at_W_SINCE] = _since = now
    _seams += 1
    if _seams < SEAMS_COUNTED or not _seams % 7 or took > _longest[old]:
        w[at_W_PROGRESS] = _seams
        count(old, took, 1 if _seams < SEAMS_COUNTED or _seams % 7 else 7)


def count(kind, took, times=1):
    """Count `times` durations of `took` nanoseconds each."""
    slot = kind * at_KIND_WORDS + took.bit_length()
    w = words
    _counts[slot] = w[at_HISTOGRAMS + slot] = _counts[slot] + times
    if took > _longest[kind]:
        _longest[kind] = w[at_HISTOGRAMS + kind * at_KIND_WORDS + at_LONGEST] = took


def step_ended():
    """One training step is over: it goes into the ring, and now and then the totals into the file."""
    global _step_began, _steps, _data_before, _backward_before, _optimizer_before
    now = _since
    w = words
    place = at_RING + _steps % at_RING_STEPS * at_STEP_WORDS
    data, backward, optimizer = _parts[at_DATA], _parts[at_BACKWARD], _parts[at_OPTIMIZER]
    w[place] = now
    w[place + 1] = now - _step_began
    w[place + 2] = data - _data_before
    w[place + 3] = backward - _backward_before
    w[place + 4] = optimizer - _optimizer_before
    _steps += 1
    w[at_W_STEP] = _steps
    _step_began, _data_before, _backward_before, _optimizer_before = now, data, backward, optimizer
    if _steps < 64 or not _steps % 16:
        write_totals()


def write_totals():
    for phase, total in enumerate(_parts):
        words[at_HISTOGRAMS + phase * at_KIND_WORDS + at_TOTAL] = total


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
at_W_PHASE, at_W_SINCE, at_W_STEP, at_W_PROGRESS = at.W_PHASE, at.W_SINCE, at.W_STEP, at.W_PROGRESS
at_RING, at_RING_STEPS, at_STEP_WORDS = at.RING, at.RING_STEPS, at.STEP_WORDS
at_DATA, at_BACKWARD, at_OPTIMIZER = at.DATA, at.BACKWARD, at.OPTIMIZER
