import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def images(n, seed):
    g = torch.Generator().manual_seed(seed)
    mask = (torch.rand(n, 1, 32, 32, generator=g) > 0.97).float()
    mask = nn.functional.max_pool2d(mask, 5, stride=1, padding=2)
    return TensorDataset(mask + 0.8 * torch.randn(n, 1, 32, 32, generator=g), mask)


def validate(model, loader):
    model.eval()
    preds, targets = [], []
    with torch.no_grad():
        for x, m in loader:
            preds.append(model(x))
            targets.append(m)
    model.train()
    p, t = torch.cat(preds).sigmoid() > 0.5, torch.cat(targets) > 0.5
    iou = ((p & t).sum() / (p | t).sum().clamp(min=1)).item()
    preds.clear()
    targets.clear()
    return iou


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(images(600, 0), batch_size=12, shuffle=True)
    val_loader = DataLoader(images(2000, 1), batch_size=50)
    model = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 8, 5, padding=2), nn.ReLU(),
                          nn.Conv2d(8, 1, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(10):
        total = 0.0
        for x, m in train_loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), m)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} val iou {validate(model, val_loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
