"""Inputs and targets that are drawn at random, and nothing is computed from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.recorder.probes.data.made_up import made_up, only_target

DRAWN = [
    "x, y = torch.randn(640, 20), torch.randint(0, 4, (640,))\nfor x, y in loader(TensorDataset(x, y)):\n    net(x)\n",
    "for _ in range(9):\n    x, y = torch.randn(8, 3), torch.rand(8, 1)\n    loss = ((net(x) - y) ** 2).mean()\n",
    "for _ in range(9):\n    y = (torch.rand(8) > 0.5).float().unsqueeze(1)\n    loss = criterion(net(batch()), y)\n",
    "class Toy:\n    def __getitem__(self, i):\n        return self.x[i], random.randint(0, 3)\n",
    "class Toy:\n    def __init__(self):\n        self.y = torch.randint(0, 4, (9,), generator=g)\n"
    "    def __getitem__(self, i):\n        return self.x[i], self.y[i]\n",
    "class Toy:\n    def __init__(self, x, y):\n        self.y = y\n    def __getitem__(self, i):\n"
    "        return load(i), self.y[i]\nToy(files, torch.randint(4, (9,)))\n",
    "def answers(n):\n    return rng.integers(0, 4, n)\ny = torch.from_numpy(answers(90)).long()\n"
    "order = torch.randperm(90)\nF.cross_entropy(net(x), y[order])\n",
    "def batches():\n    while True:\n        yield torch.randn(4, 2), torch.randn(4)\n",
]
COMPUTED = [
    "y = torch.randint(0, 4, (90,))\nx = torch.randn(4, 16)[y] + 0.5 * torch.randn(90, 16)\n"
    "TensorDataset(x[torch.randperm(90)], y)\n",
    "x = torch.randn(90, 4)\ny = x @ torch.randn(4, 1)\norder = torch.randperm(90)\nTensorDataset(x[order], y)\n",
    "x = rng.normal(size=(90, 4))\ny = x[:, 0] + 0.1 * rng.normal(size=90)\nrng.shuffle(x)\nTensorDataset(x, y)\n",
    "def make(labels):\n    return centres[labels]\ny = torch.randint(0, 4, (90,))\nTensorDataset(make(y), y)\n",
    "x = torch.randn(90, 4)\ny = rng.choice(answers, 90)\nTensorDataset(label_of(x), y)\n",
]


def read(source: str, folder: Path) -> bool | None:
    file = folder / "train.py"
    file.write_text(source)
    return made_up([str(file)])


@pytest.mark.parametrize("source", DRAWN)
def test_drawn_and_passed_on(source: str, tmp_path: Path) -> None:
    assert read(source, tmp_path) is True


@pytest.mark.parametrize("source", COMPUTED)
def test_something_is_computed_from_it(source: str, tmp_path: Path) -> None:
    assert read(source, tmp_path) is False


def test_nothing_is_drawn(tmp_path: Path) -> None:
    assert read("x, y = load()\nTensorDataset(x[torch.randperm(9)], y)\n", tmp_path) is None
    assert made_up([str(tmp_path / "none.py")]) is None


MIXED = "def moved(x):\n    return x + torch.randn_like(x)\n"
IN_LOOP = "for x in batches:\n    noise = torch.randn_like(x)\n    "


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (MIXED + IN_LOOP + "loss = F.mse_loss(net(moved(x)), noise)\n", 4),
        (MIXED + IN_LOOP + "loss = (net(moved(x)) - noise).pow(2).mean()\n", 4),
        (MIXED + "def loss(x):\n    eps = torch.randn_like(x)\n    return ((net(moved(x)) - eps) ** 2).mean()\n"
         "while True:\n    loss(x).backward()\n", 4),
        (MIXED + IN_LOOP + "loss = F.mse_loss(net(x + noise), noise)\n", None),
        (IN_LOOP + "loss = F.mse_loss(net(x), noise)\n", None),
        (MIXED + "noise = torch.randn(9, 3)\nloss = F.mse_loss(net(moved(x)), noise)\n", None),
        (MIXED + IN_LOOP + "put(F.mse_loss(net(moved(x)), noise))\n    stock.append(noise)\n", None),
        (MIXED + "TensorDataset(x, torch.randn(9))\n" + IN_LOOP + "loss = F.mse_loss(net(moved(x)), noise)\n", None),
    ],
)  # fmt: skip
def test_noise_that_is_a_target_and_nothing_else(source: str, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(source)
    found = only_target([str(file)])
    assert (found[1] if found is not None else None) == line
