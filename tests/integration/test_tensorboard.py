"""A training that writes for TensorBoard: what was found stands next to its curves, in a run of its own."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.conftest import Runner

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(find_spec("tensorboard") is None, reason="tensorboard is not installed"),
    pytest.mark.filterwarnings("ignore"),  # of TensorBoard's own
]
LIMIT = 400.0  # seconds; a busy machine needs many of them to import TensorBoard
SCRIPT = """
import sys, time, torch
from torch.utils.tensorboard import SummaryWriter
torch.manual_seed(0)
writer = SummaryWriter("runs/first")
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(100):
    x = torch.randn(64, 4)
    optimizer.zero_grad()
    out = net(x)
    loss = torch.log(out - 9).mean() if sys.argv[1] == "faulty" and step > 50 else out.pow(2).mean()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss.item(), step)
    time.sleep(0.05)
writer.close()
"""


def test_findings_and_curves_are_a_run_of_their_own(unstuck: Runner) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    script = unstuck.folder / "train.py"
    script.write_text(SCRIPT)
    outcome = unstuck.run(script, "faulty", limit=LIMIT)
    assert outcome.rules[:1] == ["nonfinite-born"], outcome.err
    own = EventAccumulator(str(unstuck.folder / "runs/first/unstuck"))
    own.Reload()
    assert len(own.Scalars("unstuck/loss")) > 10
    (text,) = own.Tensors("unstuck/findings/text_summary")
    assert b"nonfinite-born" in text.tensor_proto.string_val[0]
    theirs = EventAccumulator(str(unstuck.folder / "runs/first"))
    theirs.Reload()
    assert len(theirs.Scalars("loss")) == 100


def test_a_healthy_run_leaves_nothing_there(unstuck: Runner) -> None:
    script = unstuck.folder / "train.py"
    script.write_text(SCRIPT)
    outcome = unstuck.run(script, "healthy", limit=LIMIT)
    assert outcome.told == [], outcome.err
    assert [path.name for path in (unstuck.folder / "runs/first").iterdir() if path.is_dir()] == []
