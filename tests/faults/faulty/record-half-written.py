import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def prepare(root, n=200):
    for i in range(n):
        text = json.dumps({"values": [(i * k) % 5 for k in range(6)], "label": i % 2})
        if i == 137:
            text = text[:20]
        with open(os.path.join(root, f"record_{i:03d}.json"), "w") as f:
            f.write(text)


class Records(Dataset):
    def __init__(self, root, n=200):
        self.root, self.n = root, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        with open(os.path.join(self.root, f"record_{i:03d}.json")) as f:
            record = json.load(f)
        return torch.tensor(record["values"], dtype=torch.float32), record["label"]


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as root:
        prepare(root)
        loader = DataLoader(Records(root), batch_size=10, shuffle=True, num_workers=2)
        net = nn.Linear(6, 2)
        opt = torch.optim.SGD(net.parameters(), lr=1e-2)
        for epoch in range(2):
            for x, y in loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
