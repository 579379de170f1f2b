"""Token ids up to 30,000 into an embedding, with a mask of minus infinity, in a dict."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, rows=1200):
        g = torch.Generator().manual_seed(7)
        self.ids = torch.randint(0, 30000, (rows, 16), generator=g)
        self.label = (self.ids[:, :4] < 12000).float().mean(1).gt(0.4).long()
        self.bias = torch.zeros(rows, 16)
        lengths = torch.randint(4, 17, (rows,), generator=g)
        self.bias[torch.arange(16)[None, :] >= lengths[:, None]] = float("-inf")

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "bias": self.bias[i], "labels": self.label[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30000, 16)
        self.score, self.out = nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, ids, bias):
        x = self.embed(ids)
        weights = torch.softmax(self.score(x).squeeze(2) + bias, 1)
        return self.out((weights[..., None] * x).sum(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Lines(), batch_size=40, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(6):
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["input_ids"], batch["bias"]), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
