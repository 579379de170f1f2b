import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def infinite(loader):
    while True:
        for batch in loader:
            yield batch


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 30, generator=g)
    w = torch.randn(30, generator=torch.Generator().manual_seed(9)) / 5
    return TensorDataset(x, torch.tanh(x @ w).unsqueeze(1) + 0.1 * torch.randn(n, 1, generator=g))


torch.manual_seed(0)
loader = DataLoader(make(1500, 0), batch_size=50, shuffle=True)
xv, yv = make(500, 1).tensors
model = nn.Sequential(nn.Linear(30, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
opt = torch.optim.Adam(model.parameters(), lr=3e-4)
it = infinite(loader)
n_iters = 2000
for step in range(n_iters):
    x, y = next(it)
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 250 == 0:
        with torch.no_grad():
            print(f"iter {step} train {loss.item():.4f} val {nn.functional.mse_loss(model(xv), yv).item():.4f}", flush=True)
print("finished", flush=True)
