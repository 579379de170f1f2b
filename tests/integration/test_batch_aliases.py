"""One store of tensors, handed out in three ways: what is said of it is what happened to it."""

from __future__ import annotations

import pytest

from tests.conftest import Runner

STORE = """
import torch
from torch.utils.data import DataLoader, Dataset

class Store(Dataset):
    def __init__(self):
        self.data_store = [torch.randn(10) for _ in range(100)]

    def __len__(self):
        return 100

    def __getitem__(self, i):
        return self.data_store[i]

data = Store()
first = data.data_store[0].clone()
loader = DataLoader(data, {options})
for epoch in range({passes}):
    for number, batch in enumerate(loader):
        batch[0].add_({more})
print("changed" if (data.data_store[0] != first).any() else "as before")
"""


@pytest.mark.parametrize("made", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize(
    ("options", "more", "changed"),
    [
        pytest.param("batch_size=10", "torch.rand(10)", False, id="copied"),
        pytest.param("batch_size=None", "torch.rand(())", True, id="one-by-one", marks=pytest.mark.slow),
        pytest.param(
            "batch_size=10, collate_fn=list", "torch.rand(10)", True, id="as-they-are", marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_said_is_what_happened(unstuck: Runner, options: str, more: str, changed: bool, made: int) -> None:
    """After one pass the dataset is changed, but no batch shows it yet: a warning. The second pass is the harm."""
    script = unstuck.folder / "store.py"
    script.write_text(STORE.format(options=options, more=more, passes=made))
    outcome = unstuck.run(script)
    assert outcome.out.strip() == ("changed" if changed else "as before")
    found = [f for f in outcome.report["findings"] if f["rule"] == "batch-aliases-dataset"]
    assert [f["severity"] for f in found] == ([("warning", "error")[made - 1]] if changed else []), outcome.err[-3000:]
    if changed:
        assert (found[0]["where"]["line"], found[0]["where"]["sample"] is None) == (20, False)
        assert "data_store" in found[0]["title"]
