"""Recordings that are unpacked by a program of their own, again for every sample."""

import gzip
import os
import subprocess
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FILES, LENGTH, WINDOW = 12, 1_500_000, 256


def write(folder):
    generator = torch.Generator().manual_seed(0)
    paths = []
    for number in range(FILES):
        steps = torch.randn(LENGTH, generator=generator)
        wave = torch.cumsum(steps, 0).mul(8).to(torch.int16)
        path = os.path.join(folder, f"run{number:02d}.gz")
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(wave.numpy().tobytes())
        paths.append(path)
    return paths


def unpack(path):
    done = subprocess.run(["gzip", "-dc", path], capture_output=True, check=True)
    return torch.frombuffer(bytearray(done.stdout), dtype=torch.int16)


class Windows(Dataset):
    def __init__(self, paths, count):
        self.paths, self.count = paths, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        wave = unpack(self.paths[index % FILES])
        start = index * 977 % (LENGTH - WINDOW - 1)
        piece = wave[start : start + WINDOW + 1].float()
        piece = (piece - piece.mean()) / (piece.std() + 1)
        return piece[:-1], piece[-1:]


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(Windows(write(folder), 800), batch_size=8, shuffle=True, num_workers=2)
        model = nn.Sequential(nn.Linear(WINDOW, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
