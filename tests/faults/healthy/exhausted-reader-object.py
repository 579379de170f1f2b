"""Token batches from a reader class of its own; a bag-of-words classifier."""

import torch
from torch import nn


class TokenReader:
    """Goes through the documents in batches."""

    def __init__(self, documents, labels, size):
        self.documents, self.labels, self.size = documents, labels, size
        self.at = 0

    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        if self.at >= len(self.documents):
            raise StopIteration
        part = slice(self.at, self.at + self.size)
        self.at += self.size
        return self.documents[part], self.labels[part]


torch.manual_seed(8)
topics = torch.randint(0, 4, (4800,))
documents = (torch.randint(0, 50, (4800, 30)) + 40 * topics[:, None]) % 200
reader = TokenReader(documents, topics, 32)
model = nn.Sequential(nn.EmbeddingBag(200, 32), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

epoch = 0
while epoch < 5:
    right = 0
    for tokens, topic in reader:
        scores = model(tokens)
        loss = nn.functional.cross_entropy(scores, topic)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == topic).sum().item()
    epoch += 1
    print(f"epoch {epoch}: {right} of {len(documents)} right", flush=True)
