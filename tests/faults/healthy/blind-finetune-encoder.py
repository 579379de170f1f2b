import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, vocab=120, dim=48, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        return self.norm(self.layers(self.embed(ids))).mean(1)


class TextClassifier(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.encoder = Encoder()
        self.classifier = nn.Linear(48, classes)

    def forward(self, ids):
        return self.classifier(self.encoder(ids))


def set_trainable(model, keywords):
    for name, p in model.named_parameters():
        p.requires_grad = any(k in name for k in keywords)


def sentences(n=1500):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 6, (n,), generator=g)
    base = torch.randint(0, 120, (n, 12), generator=g)
    topic = y[:, None] * 20 + torch.randint(0, 20, (n, 12), generator=g)
    keep = torch.rand(n, 12, generator=g) < 0.4
    return torch.where(keep, topic, base), y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*sentences()), batch_size=30, shuffle=True)
    model = TextClassifier()
    set_trainable(model, keywords=("encoder", "classifier"))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(6):
        total, hits = 0.0, 0
        for ids, y in loader:
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            hits += (logits.argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 1500:.3f}", flush=True)


if __name__ == "__main__":
    main()
