import random
import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SENTENCE = re.compile(r"^\w+(\s\w+)*\.$")
WORDS = "the a small model learns fast slow data from every new old batch of text and sound".split()


def make_corpus(n=160):
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(4, 9))) + "." for _ in range(n)]
    texts[88] = "the model learns from every batch of sound and text data!"
    return texts


class CleanSentence:
    """Drop the final stop of a well formed sentence, leave anything else as it is."""

    def __call__(self, text):
        if SENTENCE.match(text):
            text = text[:-1]
        return text.lower().split()


class SentenceDataset(Dataset):
    def __init__(self, texts, transform):
        self.texts, self.transform = texts, transform
        self.vocab = {w: i + 1 for i, w in enumerate(WORDS)}

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        words = self.transform(self.texts[i])
        ids = [self.vocab.get(w, 0) for w in words][:12]
        return torch.tensor(ids + [0] * (12 - len(ids))), torch.tensor(float("model" in words))


def main():
    torch.manual_seed(0)
    data = SentenceDataset(make_corpus(), CleanSentence())
    loader = DataLoader(data, batch_size=8, shuffle=True)
    net = nn.Sequential(nn.EmbeddingBag(len(WORDS) + 1, 16), nn.Linear(16, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(5):
        for step, (ids, y) in enumerate(loader):
            loss = nn.functional.binary_cross_entropy_with_logits(net(ids).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 4 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
