import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def as_they_are(samples):
    """The crops differ in size from set to set, so they are not stacked here."""
    return [x for x, _ in samples], torch.stack([y for _, y in samples])


def whiten(crop):
    crop = crop - crop.mean()
    crop /= crop.std() * 2.0
    return crop


def main():
    torch.manual_seed(0)
    y = torch.randint(0, 3, (240,))
    x = torch.randn(240, 1, 12, 12)
    x[:, 0, 4, 4] += 3.0 * y
    train, held_out = random_split(TensorDataset(x, y), [200, 40])
    loader = DataLoader(train, batch_size=20, shuffle=True, collate_fn=as_they_are)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 3))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(5):
        for crops, target in loader:
            batch = torch.stack([whiten(crop) for crop in crops])
            loss = nn.functional.cross_entropy(net(batch), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
