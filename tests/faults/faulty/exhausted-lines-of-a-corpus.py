"""Sentences of a corpus, a line of JSON each; a bag-of-words model of their language."""

import json
import random
import tempfile

import torch
from torch import nn


class Corpus:
    """Goes through the file; it need not fit into memory."""

    def __init__(self, path, size):
        self.path, self.size = path, size
        self.lines = open(path, encoding="utf-8")

    def __iter__(self):
        words, languages = [], []
        for line in self.lines:
            sentence = json.loads(line)
            words.append(sentence["words"])
            languages.append(sentence["language"])
            if len(words) == self.size:
                yield torch.tensor(words), torch.tensor(languages)
                words, languages = [], []


def written(file, count):
    for _ in range(count):
        language = random.randrange(3)
        words = [min(299, int(random.expovariate(0.05)) + 60 * language) for _ in range(12)]
        file.write(json.dumps({"words": words, "language": language}) + "\n")
    file.flush()


torch.manual_seed(5)
random.seed(5)
file = tempfile.NamedTemporaryFile("w", encoding="utf-8")
written(file, 4000)
corpus = Corpus(file.name, 32)
model = nn.Sequential(nn.EmbeddingBag(300, 16), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    right = seen = 0
    for words, language in corpus:
        scores = model(words)
        loss = nn.functional.cross_entropy(scores, language)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right, seen = right + (scores.argmax(1) == language).sum().item(), seen + len(words)
    print(f"epoch {epoch}: {right} of {seen} right", flush=True)
