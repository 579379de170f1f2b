import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def blobs(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (n,), generator=g)
    centres = torch.tensor([[2.0, 0.0], [-2.0, 1.5], [0.0, -2.5]])
    return TensorDataset(centres[y] + 0.45 * torch.randn(n, 2, generator=g), y)


def evaluate(model, loader):
    correct = total = 0
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
            total += y.size(0)
    return correct / total


torch.manual_seed(0)
train_loader = DataLoader(blobs(1200, 0), batch_size=24, shuffle=True)
test_loader = DataLoader(blobs(400, 1), batch_size=100)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

accuracy = 0.0
epoch = 0
while accuracy < 98:
    epoch += 1
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    accuracy = evaluate(model, test_loader)
    print(f"Epoch {epoch}: test accuracy {accuracy:.4f}", flush=True)

print("target reached")
