import struct

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def pack(values):
    return b"".join(struct.pack("<I", 4 + 4 * len(v)) + np.asarray(v, "<f4").tobytes() for v in values)


def make_records(n=300):
    rng = np.random.default_rng(6)
    records = [pack(rng.normal(size=(rng.integers(2, 6), 5))) for _ in range(n)]
    records[121] += struct.pack("<I", 0)
    return records


class ChunkedRecords(Dataset):
    """Every record is a list of length-prefixed chunks; the chunks are averaged."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def chunks(self, raw):
        pos, found = 0, []
        while pos < len(raw):
            (size,) = struct.unpack_from("<I", raw, pos)
            if size == 0:
                break
            if size > 4:
                found.append(np.frombuffer(raw, "<f4", (size - 4) // 4, pos + 4))
            pos += size
        return found

    def __getitem__(self, i):
        x = torch.from_numpy(np.mean(self.chunks(self.records[i]), axis=0))
        return x, x.sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    loader = DataLoader(ChunkedRecords(make_records()), batch_size=6, num_workers=0)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(4):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
