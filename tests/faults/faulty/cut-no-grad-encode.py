import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Matcher(nn.Module):
    def __init__(self, words=300):
        super().__init__()
        self.embed = nn.EmbeddingBag(words, 24)
        self.mix = nn.Linear(24, 24)
        self.score = nn.Bilinear(24, 24, 1)

    @torch.no_grad()
    def encode(self, tokens):
        return torch.tanh(self.mix(self.embed(tokens)))

    def forward(self, left, right):
        return self.score(self.encode(left), self.encode(right)).squeeze(1)


def pairs(n=1200):
    topic = torch.randint(0, 6, (n,))
    same = torch.rand(n) < 0.5
    other = torch.where(same, topic, (topic + 1 + torch.randint(0, 5, (n,))) % 6)
    left = topic[:, None] * 50 + torch.randint(0, 50, (n, 8))
    right = other[:, None] * 50 + torch.randint(0, 50, (n, 8))
    return left, right, same.float()


def main():
    torch.manual_seed(5)
    loader = DataLoader(TensorDataset(*pairs()), batch_size=40, shuffle=True)
    model = Matcher()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(10):
        total = 0.0
        for left, right, same in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(left, right), same)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
