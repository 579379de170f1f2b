import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def utterances(n=2000, intents=7, length=10):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, intents, (n,), generator=g)
    noise = torch.randint(0, 140, (n, length), generator=g)
    key = y[:, None] * 20 + torch.randint(0, 20, (n, length), generator=g)
    return torch.where(torch.rand(n, length, generator=g) < 0.5, key, noise), y


class IntentLSTM(nn.Module):
    def __init__(self, vocab=140, dim=32, hidden=64, intents=7):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, intents)

    def forward(self, ids):
        _, (h, _) = self.lstm(self.embed(ids))
        scores = self.out(h[-1])
        return F.log_softmax(scores, dim=1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*utterances()), batch_size=40, shuffle=True)
    model = IntentLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.NLLLoss()
    for epoch in range(8):
        total, hits = 0.0, 0
        for ids, y in loader:
            log_prob = model(ids)
            loss = criterion(log_prob, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (log_prob.argmax(1) == y).sum().item()
        print(f"epoch {epoch} nll {total / len(loader):.4f} acc {hits / 2000:.3f}", flush=True)


if __name__ == "__main__":
    main()
