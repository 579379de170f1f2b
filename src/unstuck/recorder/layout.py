"""Where everything lies in a flight file: one table for the writer inside and the reader outside.

The file is an array of signed 64-bit words in the machine's own byte order, then a few text fields. Words are
written one at a time without a lock: a reader may see one store of a pair, never half a word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Words = memoryview[int] | list[int]

MAGIC = 0x756E737475636B  # "unstuck"
VERSION = 7

# Words
W_MAGIC, W_VERSION, W_PID, W_PPID, W_START_TICKS, W_BEGAN = range(6)
W_ROLE, W_WORKER, W_RANK, W_FORKED, W_ENDED = range(6, 11)
W_STEP, W_EPOCH, W_BATCH, W_PROGRESS = range(12, 16)
W_SAMPLE, W_POSITION, W_SAMPLE_SINCE, W_FETCHING, W_PASS_STEP, W_LOADERS = range(17, 23)
W_ATTEMPTS, W_SLEEPS, W_TARGET_LENGTH, W_KEY_LENGTH = range(23, 27)
W_REQUEST, W_ANSWERED, W_RING, W_THREAD, W_OFF_LENGTH = range(27, 32)
W_NEWS, W_BATCH_BYTES = range(32, 34)  # W_NEWS: records written that are worth applying the rules to
W_DEVICE_BYTES = 34  # that torch's allocator had handed out on the present device, as last sampled
W_CODE, W_STACK = 36, 37  # addresses in its memory: other ones after an exec, by which it replaces itself
W_STARVED = 35  # how often it was told that a tenth of the time or more is waited for batches
W_WORLD, W_COLLECTIVES = range(38, 40)  # ranks in the world as its launcher said; collectives entered so far
W_LAST_LENGTH, W_ATTEMPTS_AT = range(40, 42)  # W_ATTEMPTS_AT: which sample or phase the attempts are of
W_RESTED = (
    42  # while hooks rest (see resting): steps to go, less than 0 inside the loader; BEGUN before its first batch
)
W_FORMING, W_FORMED, W_DISBANDED = range(43, 46)  # when init_process_group began and ended (< 0: it raised); destroyed
W_TOGETHER = 46  # nanoseconds inside collectives so far
W_BACKWARDS = 47  # backward passes made; outside of sampled steps it is written at one in 64
W_SINCE = 48  # … 55: nanoseconds at which each phase last began; the newest is the present phase
WORDS_END = 64

# W_REQUEST: what the supervisor asks for, answered at the next seam and set to 0 again.
ASK_LOOPS, ASK_GROWTH = 1, 2

RESTS, BEGUN = 60, 1 << 20  # steps that hooks rest: with the one that is noted 61, in time with no number of workers

NONE = -1
COLLATING = -2  # W_POSITION: every sample of the batch is drawn, collate_fn is at work

ROLES = ("unknown", "main", "rank", "worker", "launcher", "helper")
PHASES = ("start", "data", "between", "backward", "optimizer", "fetch", "idle", "ended")
START, DATA, BETWEEN, BACKWARD, OPTIMIZER, FETCH, IDLE, ENDED = range(8)
SINCE_END = W_SINCE + len(PHASES)

# One histogram of durations a kind: bucket = bit length of the nanoseconds; then total and longest.
KINDS = ("start", "data", "between", "backward", "optimizer", "fetch", "idle", "sample")
SAMPLE_KIND = KINDS.index("sample")
BUCKETS = 62
TOTAL, LONGEST = 62, 63
KIND_WORDS = 64
HISTOGRAMS = WORDS_END
HISTOGRAMS_END = HISTOGRAMS + len(KINDS) * KIND_WORDS

# Ring of recent steps: when it ended, then nanoseconds in all, in data, backward, optimizer, of processor time; the
# elements of its batch, and its number.
RING = HISTOGRAMS_END
RING_STEPS = 256
STEP_WORDS = 8
# A worker makes no steps: there a row is a batch that it made. When it was ready, nanoseconds that it took, its first
# index (NONE: not an integer), how many samples, and 1 if it failed.
FETCHES_READ = 64  # of the rows of a worker; more would make the Case of a run with many workers large
RING_END = RING + RING_STEPS * STEP_WORDS

# Ring of recent collectives, a row of words each.
(
    C_SERIAL,  # counted from 1: of another serial, the place is used again
    C_GROUP,  # number of the group in this process
    C_NUMBER,  # of the collective in that group
    C_KIND,  # place in COLLECTIVES, and flags
    C_PEER,  # source or destination rank; NONE: all are alike
    C_ENTERED,
    C_LEFT,  # 0: not yet; below 0: it raised then. Of an asynchronous one: handed over
    C_SITE,  # number of the user's line; 0: not known
    C_TYPE,  # place of the dtype in DTYPES, plus 64 for each dimension
    C_SIZES,  # the first two sizes, and the next two, 31 bits each
    C_MORE_SIZES,
    C_STEP,  # training steps made
) = range(12)
COLLECTIVE_WORDS = 12
COLLECTIVES_AT = RING_END
COLLECTIVES_KEPT = 64
COLLECTIVES_END = COLLECTIVES_AT + COLLECTIVES_KEPT * COLLECTIVE_WORDS
COLLECTIVES = (
    "", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all",
    "barrier", "send", "recv", "ddp_parameters", "ddp_broadcast", "ddp_gradients", "new_group",
)  # fmt: skip
"""Those of ddp are started by DistributedDataParallel: its check of all parameters, a broadcast of parameters or
buffers, the averaging of gradients in a backward pass."""
ASYNC, PENDING = 1 << 8, 1 << 9  # PENDING: begins in the backward pass that is to come, if one comes
DTYPES = (
    "", "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
    "complex128",
)  # fmt: skip

# The last pass over each loader, a row of words each.
(
    P_LOADER,  # its number, counted from 1: loaders with the same place take turns
    P_PASS,
    P_BATCHES,  # NONE: it has not come to its end
    P_STEPS,  # training steps when it began, and from its end on those made in it
) = range(4)
PASS_WORDS = 4
PASSES_AT = COLLECTIVES_END
PASSES_KEPT = 8
PASSES_END = PASSES_AT + PASSES_KEPT * PASS_WORDS

# Texts, in bytes
TARGET_AT = PASSES_END * 8
TARGET_SIZE = 512
KEY_AT = TARGET_AT + TARGET_SIZE
KEY_SIZE = 128
OFF_AT = KEY_AT + KEY_SIZE  # a line "probe\twhy" for each probe off that could not be written to its journal
OFF_SIZE = 512
LAST_AT = OFF_AT + OFF_SIZE  # records, a line each, that could not be written: no disk and no descriptor is needed here
LAST_SIZE = 12288
SIZE = (LAST_AT + LAST_SIZE + 4095) // 4096 * 4096

FLIGHT, RECORDS, STACKS, SIGNALS = ".flight", ".records", ".stacks", ".signals"
LEARNING = ".learning"  # one fact, each time in the place of the one before
DATA_STATS = ".data"  # the same, of what is in the batches
HEARD = ".heard"  # a pipe: the number of each signal that the script handled

HIGH = 400  # descriptors we keep open have numbers above this


def place_of(words: Words) -> int:
    """One number for the sample or phase in work."""
    phase = max(words[W_SINCE:SINCE_END]) ^ words[W_RESTED] * 15_485_863
    return (phase ^ words[W_SAMPLE] * 1_000_003 ^ words[W_POSITION] * 7_368_787) & (1 << 62) - 1


def present(words: Words) -> tuple[int, int]:
    """The phase it is in, and when that began, in nanoseconds."""
    since, phase = max(zip(words[W_SINCE:SINCE_END], range(len(PHASES)), strict=True))
    if words[W_RESTED] and phase != ENDED:
        phase = DATA if words[W_RESTED] < 0 else BETWEEN
    return phase, since


def steps_made(words: Words) -> int:
    """Training steps, with those made while the hooks rest."""
    resting = words[W_RESTED] and words[W_RESTED] != BEGUN
    return words[W_STEP] + (RESTS - abs(words[W_RESTED]) if resting else 0)
