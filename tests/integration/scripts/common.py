"""What the scripts beside it print: everything of a process that a recorder might have changed."""

import gc
import hashlib
import os
import pickle
import random
import resource
import signal
import sys
import threading
import warnings

import numpy as np
import torch

HIGH = 300  # descriptors above are nobody's business


def digest(value):
    return hashlib.sha256(value).hexdigest()[:16]


def show_loss(name, loss):
    print(name, float(loss.detach()).hex())


def show_weights(name, module):
    state = module.state_dict()
    print(name, digest(b"".join(state[key].detach().numpy().tobytes() for key in sorted(state))))


def show_random_states():
    print("torch rng", digest(torch.get_rng_state().numpy().tobytes()), float(torch.rand(1)).hex())
    print("python rng", digest(pickle.dumps(random.getstate())), random.random())
    print("numpy rng", digest(pickle.dumps(np.random.get_state())), np.random.rand())


def show_surroundings(file):
    print("argv", sys.argv, "file", file, "path", sys.path)
    print("environment", sorted(n for n in os.environ if not n.startswith("UNSTUCK_") and n != "PYTHONPATH"))
    print("flags", sys.flags, sys.warnoptions, len(warnings.filters), sys.excepthook is sys.__excepthook__)
    ours = [t.name for t in threading.enumerate() if t.name != "QueueFeederThread"]  # those end when they get to it
    print("threads", ours)
    print("handlers", [(s, str(signal.getsignal(s)).partition(" at 0x")[0]) for s in sorted(signal.valid_signals())])
    print("mask", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    print("limits", [resource.getrlimit(n) for n in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_AS)])
    print("tracing", sys.gettrace(), sys.getprofile(), threading.gettrace(), gc.get_threshold(), gc.isenabled())
    print("folder", os.getcwd(), os.umask(0o022), os.nice(0), os.isatty(0), os.isatty(1))
    new = [os.open(os.devnull, os.O_RDONLY) for _ in range(12)]
    print("descriptors", new)
    for number in new:
        os.close(number)
    print("open", sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < HIGH))
