import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 4, (1500,), generator=g)
    x = torch.randn(1500, 3, 16, 16, generator=g) + 0.4 * torch.randn(4, 3, 1, 1, generator=g)[y]
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                          nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 4))
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    losses, accs, grad_norms, lrs = [], [], [], []
    for epoch in range(17):
        for xb, yb in loader:
            out = model(xb)
            loss = nn.functional.cross_entropy(out, yb)
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            losses.append(loss.item())
            accs.append((out.argmax(1) == yb).float().mean().item())
            grad_norms.append(norm.item())
            lrs.append(opt.param_groups[0]["lr"])
        n = len(loader)
        print(f"epoch {epoch} loss {sum(losses[-n:]) / n:.4f} acc {sum(accs[-n:]) / n:.3f} "
              f"grad {sum(grad_norms[-n:]) / n:.3f}", flush=True)
    print(f"{len(losses)} points recorded", flush=True)


if __name__ == "__main__":
    main()
