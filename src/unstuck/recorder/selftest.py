"""Tries every seam on the torch of the Python that runs this file, with a training of two steps. Not injected.

python selftest.py        one line a seam, exit 1 if one does not fire
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    """Run as a script by whatever interpreter was chosen: the package is loaded as the injected one is."""
    package = type(sys)("_unstuck_recorder")
    package.__path__ = [PACKAGE]
    sys.modules["_unstuck_recorder"] = package
    start = importlib.import_module("_unstuck_recorder.start")
    flight = importlib.import_module("_unstuck_recorder.flight")
    guard = importlib.import_module("_unstuck_recorder.guard")
    at = importlib.import_module("_unstuck_recorder.layout")
    with tempfile.TemporaryDirectory() as folder:
        start.start(folder)
        seen = train(flight, at)
        start.stop()
    for name, good in seen.items():
        print(f"{name}: {'fires' if good else 'does not fire'}")
    for name, why in guard.OFF.items():
        print(f"{name}: off ({why})")
    return 0 if all(seen.values()) and not guard.OFF else 1


def train(flight: object, at: object) -> dict[str, bool]:
    """Two steps over a loader; which phases were entered says which seams fired."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.zeros(4, 2)), batch_size=2):
        model(x).sum().backward()
        optimizer.step()
    counts = flight._counts  # type: ignore[attr-defined]
    words = flight.words  # type: ignore[attr-defined]

    def counted(kind: str) -> bool:
        start = at.KINDS.index(kind) * at.KIND_WORDS  # type: ignore[attr-defined]
        return any(counts[start : start + at.BUCKETS])  # type: ignore[attr-defined]

    return {
        "loader": counted("data") and words[at.W_LOADERS] == 1,  # type: ignore[attr-defined]
        "samples": counted("sample"),
        "backward": counted("backward"),
        "optimizer": counted("optimizer") and words[at.W_STEP] == 2,  # type: ignore[attr-defined]
    }


if __name__ == "__main__":
    sys.exit(main())
