import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class EarlyStopping:
    def __init__(self, patience=5, min_delta=1e-3):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad_epochs = 0

    def step(self, value):
        if value < self.best - self.min_delta:
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def dataset():
    g = torch.Generator().manual_seed(8)
    x = torch.randn(2500, 20, generator=g)
    y = ((x[:, :4] * torch.tensor([1.0, -1.0, 0.7, 0.5])).sum(1) + 0.7 * torch.randn(2500, generator=g) > 0).float()
    return TensorDataset(x, y)


def train_epoch(model, loader, opt):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def val_epoch(model, loader):
    model.eval()
    losses = [nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    train_set, val_set = random_split(dataset(), [2000, 500], generator=torch.Generator().manual_seed(0))
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)
    model = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 256), nn.ReLU(),
                          nn.Linear(256, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    stopper = EarlyStopping(patience=8)
    epoch = 0
    while True:
        train_loss = train_epoch(model, train_loader, opt)
        val_loss = val_epoch(model, val_loader)
        epoch += 1
        print(f"epoch {epoch} train {train_loss:.4f} val {val_loss:.4f} bad {stopper.bad_epochs}", flush=True)
        if stopper.step(val_loss):
            print("early stopping", flush=True)
            break


if __name__ == "__main__":
    main()
