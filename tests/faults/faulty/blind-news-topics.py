"""Topic classifier for short headlines: own tokenizer, padding and batching."""
import random
import re
from collections import Counter
from dataclasses import dataclass

import torch
import torch.nn as nn

TOPICS = {
    "sport": "match goal coach season striker league win defeat penalty stadium final cup".split(),
    "money": "bank shares market profit inflation bond rates investor trade growth euro stocks".split(),
    "health": "patient vaccine doctor hospital virus clinic trial nurse surgery diet heart drug".split(),
    "tech": "chip software cloud phone robot startup data network laptop update privacy code".split(),
    "travel": "flight beach hotel tourist train airport island museum visa passport cruise ticket".split(),
}
FILLER = "the a of in after before says new old big report today week again over under city people will may".split()


@dataclass
class Config:
    batch_size: int = 32
    max_steps: int = 1500
    lr: float = 1e-3
    dim: int = 48
    hidden: int = 96
    log_every: int = 25
    seed: int = 11


def make_headlines(n, rng):
    names = list(TOPICS)
    every_word = [w for ws in TOPICS.values() for w in ws]
    rows = []
    for _ in range(n):
        y = rng.randrange(len(names))
        words = rng.choices(FILLER, k=rng.randint(4, 12))
        words += rng.choices(TOPICS[names[y]], k=rng.randint(1, 3))
        words += rng.choices(every_word, k=1)
        rng.shuffle(words)
        rows.append((" ".join(words).capitalize(), y))
    return rows


class Tokenizer:
    def __init__(self, texts):
        counts = Counter(w for t in texts for w in self.split(t))
        self.ids = {w: i + 2 for i, (w, _) in enumerate(counts.most_common())}

    @staticmethod
    def split(text):
        return re.findall(r"[a-z]+", text.lower())

    def encode(self, text):
        return [self.ids.get(w, 1) for w in self.split(text)]

    def __len__(self):
        return len(self.ids) + 2


def make_batches(rows, tok, size):
    rows = sorted(rows, key=lambda r: len(r[0]))
    chunks = [rows[i:i + size] for i in range(0, len(rows), size)]
    random.shuffle(chunks)
    for chunk in chunks:
        seqs = [tok.encode(t) for t, _ in chunk]
        width = max(map(len, seqs))
        x = torch.tensor([s + [0] * (width - len(s)) for s in seqs])
        yield x, torch.tensor([y for _, y in chunk])


class Classifier(nn.Module):
    def __init__(self, vocab, cfg):
        super().__init__()
        self.emb = nn.Embedding(vocab, cfg.dim, padding_idx=0)
        self.rnn = nn.GRU(cfg.dim, cfg.hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * cfg.hidden, len(TOPICS))

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        mask = (x > 0).unsqueeze(-1)
        return self.out(h.masked_fill(~mask, -1e4).max(1).values)


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        self.loss_fn = nn.CrossEntropyLoss()
        self.step = 0

    def fit(self, batches):
        seen, total = 0, 0.0
        self.model.train()
        while self.step < self.cfg.max_steps:
            for x, y in batches:
                loss = self.loss_fn(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.step += 1
                total, seen = total + loss.item(), seen + 1
                if self.step % self.cfg.log_every == 0:
                    print(f"step {self.step:5d}  loss {total / seen:.4f}", flush=True)
                    seen, total = 0, 0.0
                if self.step >= self.cfg.max_steps:
                    break

    @torch.no_grad()
    def accuracy(self, batches):
        self.model.eval()
        good = n = 0
        for x, y in batches:
            good += (self.model(x).argmax(1) == y).sum().item()
            n += len(y)
        return good / n


def main():
    cfg = Config()
    random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    rng = random.Random(cfg.seed)
    train_rows, test_rows = make_headlines(6400, rng), make_headlines(800, rng)
    tok = Tokenizer(t for t, _ in train_rows)
    trainer = Trainer(Classifier(len(tok), cfg), cfg)
    trainer.fit(make_batches(train_rows, tok, cfg.batch_size))
    print(f"test accuracy {trainer.accuracy(make_batches(test_rows, tok, 100)):.3f}")


if __name__ == "__main__":
    main()
