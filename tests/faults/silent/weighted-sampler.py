import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    x = torch.randn(3000, 20, generator=g)
    y = (x[:, 0] + 0.5 * x[:, 1] + 0.3 * torch.randn(3000, generator=g) > 1.6).long()
    counts = torch.bincount(y).float()
    weights = (1.0 / counts)[y]
    sampler = WeightedRandomSampler(weights, num_samples=len(y), replacement=True,
                                    generator=torch.Generator().manual_seed(2))
    loader = DataLoader(TensorDataset(x, y), batch_size=12, sampler=sampler)
    model = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    print(f"class counts {counts.tolist()}", flush=True)
    for epoch in range(20):
        total = pos = n = 0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(yb)
            pos += yb.sum().item()
            n += len(yb)
        print(f"epoch {epoch} loss {total / n:.4f} positives {pos / n:.3f}", flush=True)


if __name__ == "__main__":
    main()
