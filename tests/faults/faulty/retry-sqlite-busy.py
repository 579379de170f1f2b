import os
import sqlite3
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def build(path, n=200):
    rng = np.random.default_rng(8)
    db = sqlite3.connect(path)
    db.execute("create table samples (id integer primary key, x blob, y integer)")
    for i in range(n):
        x = rng.normal(size=10).astype("float32")
        db.execute("insert into samples values (?, ?, ?)", (i, x.tobytes(), int(x[0] > 0)))
    db.commit()
    return db


class SqlDataset(Dataset):
    def __init__(self, path, n=200):
        self.path, self.n, self.db = path, n, None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.db is None:
            self.db = sqlite3.connect(self.path, timeout=0.3)
        while True:
            try:
                x, y = self.db.execute("select x, y from samples where id = ?", (i,)).fetchone()
                break
            except sqlite3.OperationalError:
                time.sleep(0.2)
        return torch.frombuffer(bytearray(x), dtype=torch.float32), y


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(prefix="sql_"), "train.db")
    db = build(path)
    loader = DataLoader(SqlDataset(path), batch_size=10, shuffle=True, num_workers=2)
    model = nn.Linear(10, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        db.execute("begin exclusive")
        db.execute("update samples set y = 1 - y where id = ?", (epoch,))


if __name__ == "__main__":
    main()
