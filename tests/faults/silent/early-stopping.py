import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class EarlyStopper:
    def __init__(self, patience):
        self.patience, self.counter, self.best, self.weights = patience, 0, None, None

    def update(self, loss, model):
        if self.best is None or loss < self.best:
            self.best, self.counter = loss, 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(5)
    x = torch.randn(2400, 25, generator=g)
    y = (x[:, :5].sum(1) + 2.0 * torch.randn(2400, generator=g) > 0).long()
    tr, va = random_split(TensorDataset(x, y), [2000, 400], generator=g)
    train_loader = DataLoader(tr, batch_size=16, shuffle=True)
    val_loader = DataLoader(va, batch_size=200)
    model = nn.Sequential(nn.Linear(25, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.003)
    stopper = EarlyStopper(patience=10)
    for epoch in range(500):
        model.train()
        for xb, yb in train_loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            val = sum(nn.functional.cross_entropy(model(a), b).item() for a, b in val_loader) / len(val_loader)
        print(f"epoch {epoch} val {val:.4f} patience {stopper.counter}/{stopper.patience}", flush=True)
        if stopper.update(val, model):
            print("no improvement, stopping", flush=True)
            break
    model.load_state_dict(stopper.weights)
    print(f"best {stopper.best:.4f}", flush=True)


if __name__ == "__main__":
    main()
