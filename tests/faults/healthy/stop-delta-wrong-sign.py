import torch
import torch.nn.functional as F
from torch import nn


class EarlyStopper:
    def __init__(self, patience=5, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.counter = 0
        self.min_loss = float("inf")

    def should_stop(self, loss):
        if loss < self.min_loss - self.min_delta:
            self.min_loss = loss
            self.counter = 0
        else:
            self.counter += 1
            if self.counter >= self.patience:
                return True
        return False


def fake_images(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (n,), generator=g)
    images = torch.randn(n, 1, 12, 12, generator=g)
    for i, label in enumerate(labels.tolist()):
        images[i, 0, label * 3:label * 3 + 3] += 0.5
    return images, labels


def main():
    torch.manual_seed(0)
    train_x, train_y = fake_images(1500, 0)
    test_x, test_y = fake_images(500, 1)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(8 * 25, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    stopper = EarlyStopper(patience=5, min_delta=0.05)
    for epoch in range(1_000_000):
        net.train()
        for rows in torch.randperm(len(train_x)).split(50):
            loss = F.cross_entropy(net(train_x[rows]), train_y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            test_loss = F.cross_entropy(net(test_x), test_y).item()
        print(f"epoch {epoch} test {test_loss:.4f} patience {stopper.counter}/{stopper.patience}", flush=True)
        if stopper.should_stop(test_loss):
            print("early stop", flush=True)
            break


main()
