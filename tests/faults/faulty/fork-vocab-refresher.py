import collections
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Vocabulary:
    def __init__(self, texts):
        self.lock = threading.RLock()
        self.counts = collections.Counter(w for t in texts for w in t.split())
        self.index = {w: i for i, w in enumerate(sorted(self.counts))}

    def encode(self, text):
        with self.lock:
            return [self.index[w] for w in text.split()]

    def recount(self, texts):
        """Long-running statistics over the corpus, in the background."""
        for _ in range(400):
            with self.lock:
                self.counts = collections.Counter(w for t in texts for w in t.split())
                time.sleep(0.05)


class Texts(Dataset):
    def __init__(self, texts, vocab):
        self.texts, self.vocab = texts, vocab

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        ids = self.vocab.encode(self.texts[i])
        return torch.tensor(ids), float(ids[0] > 20)


def main():
    torch.manual_seed(0)
    words = [f"w{k}" for k in range(40)]
    texts = [" ".join(words[(7 * i + 3 * j) % 40] for j in range(10)) for i in range(300)]
    vocab = Vocabulary(texts)
    loader = DataLoader(Texts(texts, vocab), batch_size=15, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.EmbeddingBag(40, 12), nn.Linear(12, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        for ids, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids).squeeze(1), y.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        if epoch == 0:
            threading.Thread(target=vocab.recount, args=(texts,), daemon=True).start()


if __name__ == "__main__":
    main()
