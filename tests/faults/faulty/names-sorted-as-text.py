"""Grades of weld seams: one measurement file each, the grades in the order in which they were taken."""

import os
import tempfile

import numpy as np
import torch
from torch import nn

SEAMS = 700


def take(folder):
    chance = np.random.default_rng(8)
    grades = chance.integers(0, 4, SEAMS)
    pattern = chance.normal(size=(4, 16))
    for number, grade in enumerate(grades):
        measured = pattern[grade] + 0.8 * chance.normal(size=16)
        np.save(os.path.join(folder, f"seam{number}.npy"), measured.astype("float32"))
    return grades


class Seams(torch.utils.data.Dataset):
    def __init__(self, folder, grades):
        names = [name for name in os.listdir(folder) if name.endswith(".npy")]
        self.paths = [os.path.join(folder, name) for name in sorted(names)]
        self.grades = grades

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, at):
        return np.load(self.paths[at]), int(self.grades[at])


with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(0)
    seams = Seams(folder, take(folder))
    loader = torch.utils.data.DataLoader(seams, batch_size=35, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(15):
        hits = 0
        for measured, grade in loader:
            scores = model(measured)
            loss = nn.functional.cross_entropy(scores, grade)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += int((scores.argmax(1) == grade).sum())
        print(f"epoch {epoch}: {hits / len(seams):.3f} right", flush=True)
