"""Batches that are the data set's own memory, and files that workers share: named with line and proof; twins silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

RULES = ("batch-aliases-dataset", "file-handle-shared-across-workers")
ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
EXPECTED = {name: facts for name, facts in ALL.items() if facts["rules"][0] in RULES}
QUICK = ("alias-view-collate", "handle-record-file")
TWINS = ("handle-zip-archive",)


def cases(quick: Any) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in sorted(EXPECTED)]


@pytest.mark.parametrize("name", cases(QUICK))
def test_faulty_script_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    outcome = unstuck.run(script)
    assert outcome.rules == facts["rules"], outcome.err[-3000:]
    first = outcome.loud[0]
    assert first["severity"] == "error"
    assert first["where"]["file"].endswith(script.name), first
    low, high = facts["line"]
    assert low <= first["where"]["line"] <= high, (first["where"], facts["line"])
    assert len(first["evidence"]) >= 3
    assert first["fix"]["text"]
    assert outcome.report["probes_off"] == []


@pytest.mark.slow
def test_a_sample_that_raises_of_it_is_its_consequence(unstuck: Runner) -> None:
    outcome = unstuck.run(FAULTS / "faulty" / "handle-fromfile-dies.py")
    assert [f["rule"] for f in outcome.loud] == ["file-handle-shared-across-workers"], outcome.err[-3000:]
    if outcome.code:  # a race: now and then all samples are well
        assert outcome.loud[0]["consequences"][0].startswith("sample-raises: "), outcome.loud[0]


@pytest.mark.parametrize("name", cases(TWINS))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py")
    assert outcome.rules == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["probes_off"] == []


# --- one store of tensors, handed out in three ways ----------------------------------------------------------

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
    """After one pass the data set is changed, but nothing was given it: a warning. The second pass is the harm."""
    script = unstuck.folder / "store.py"
    script.write_text(STORE.format(options=options, more=more, passes=made))
    outcome = unstuck.run(script)
    assert outcome.out.strip() == ("changed" if changed else "as before")
    found = [f for f in outcome.report["findings"] if f["rule"] == "batch-aliases-dataset"]
    assert [f["severity"] for f in found] == ([("warning", "error")[made - 1]] if changed else []), outcome.err[-3000:]
    if changed:
        assert (found[0]["where"]["line"], found[0]["where"]["sample"] is None) == (20, False)
        assert "data_store" in found[0]["title"]
