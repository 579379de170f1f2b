import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def draw_shapes(n=1600, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    img = 0.1 * torch.randn(n, 1, 16, 16, generator=g)
    pos = torch.randint(2, 8, (n, 2), generator=g)
    for i in range(n):
        r, c = pos[i].tolist()
        if y[i] == 0:
            img[i, 0, r, c:c + 6] += 1
        elif y[i] == 1:
            img[i, 0, r:r + 6, c] += 1
        else:
            img[i, 0, r:r + 4, c:c + 4] += 1
    return TensorDataset(img, y)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 16, 64)
        self.fc2 = nn.Linear(64, 3)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def main():
    torch.manual_seed(0)
    loader = DataLoader(draw_shapes(), batch_size=32, shuffle=True)
    net = SmallCNN()
    opt = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
    for epoch in range(8):
        loss_sum, hits = 0.0, 0
        for img, label in loader:
            logits = net(img)
            loss = F.cross_entropy(logits, label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.item()
            hits += (logits.argmax(1) == label).sum().item()
        print(f"epoch {epoch}: loss={loss_sum / len(loader):.4f} acc={hits / 1600:.3f}")


if __name__ == "__main__":
    main()
