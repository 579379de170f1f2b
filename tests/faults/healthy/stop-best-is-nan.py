import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


class EarlyStopping:
    def __init__(self, patience=6):
        self.patience = patience
        self.best = None
        self.bad = 0
        self.stop = False

    def __call__(self, value):
        if self.best is None:
            self.best = value
        if value > self.best:
            self.bad += 1
            if self.bad >= self.patience:
                self.stop = True
        else:
            self.best = min(self.best, value)
            self.bad = 0


def make_data():
    g = torch.Generator().manual_seed(2)
    x = torch.rand(1600, 10, generator=g) * 4
    y = x.prod(1, keepdim=True).clamp(max=50).log1p() + 0.3 * torch.randn(1600, 1, generator=g)
    return TensorDataset(x, y)


def run_epoch(model, loader, opt):
    for x, y in loader:
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()


@torch.no_grad()
def relative_error(model, loader):
    total, count = 0.0, 0
    for x, y in loader:
        pred = model(x)
        total += ((pred - y).abs() / y.clamp(min=0).sqrt().add(0.2).sqrt()).sum().item()
        count += len(x)
    return total / count


torch.manual_seed(0)
data = make_data()
train_loader = DataLoader(Subset(data, range(1200)), batch_size=40, shuffle=True)
val_loader = DataLoader(Subset(data, range(1200, 1600)), batch_size=100)
model = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
stopper = EarlyStopping(patience=6)

epoch = 0
while not stopper.stop:
    run_epoch(model, train_loader, opt)
    error = relative_error(model, val_loader)
    stopper(error)
    epoch += 1
    print(f"epoch {epoch} val error {error:.4f}", flush=True)
print("stopped after", epoch, "epochs", flush=True)
