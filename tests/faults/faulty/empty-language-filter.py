import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

MANIFEST = [{"id": k, "lang": ["en-US", "de-DE", "fr-FR"][k % 3], "dur": 1.0 + (k % 7)} for k in range(3600)]


class Utterances(IterableDataset):
    def __init__(self, manifest, lang, max_dur=6.0):
        self.rows = [r for r in manifest if r["lang"] == lang and r["dur"] <= max_dur]

    def __iter__(self):
        for r in self.rows:
            time.sleep(0.0005)
            g = torch.Generator().manual_seed(r["id"])
            word = torch.randint(0, 6, (1,), generator=g).item()
            feats = torch.randn(20, 24, generator=g) * 0.8
            feats[:, word * 4:word * 4 + 4] += 0.5
            yield feats, word


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(24, 64, batch_first=True)
        self.out = nn.Linear(64, 6)

    def forward(self, x):
        return self.out(self.rnn(x)[0].mean(1))


def run_phase(name, model, loader, epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        steps, total = 0, 0.0
        for feats, word in loader:
            loss = nn.functional.cross_entropy(model(feats), word)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            total += loss.item()
        print(f"{name} epoch {epoch} loss {total / (steps or 1):.4f}", flush=True)


def main():
    torch.manual_seed(0)
    model = Spotter()
    pretrain = DataLoader(Utterances(MANIFEST, "en-US"), batch_size=16)
    finetune = DataLoader(Utterances(MANIFEST, "de_DE"), batch_size=16)
    run_phase("pretrain", model, pretrain, epochs=6, lr=2e-3)
    run_phase("finetune", model, finetune, epochs=3, lr=5e-4)
    print("saved", flush=True)


if __name__ == "__main__":
    main()
