"""A classifier of comments with attention, in which one comment has no words left after cleaning."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader

VOCABULARY = 200
STOP_WORDS = range(1, 40)


def write_comments(count, seed=0):
    rng = random.Random(seed)
    comments = []
    for _ in range(count):
        angry = rng.random() < 0.5
        topic = range(40, 120) if angry else range(90, VOCABULARY)
        words = rng.choices(topic, k=rng.randint(4, 20)) + rng.choices(STOP_WORDS, k=rng.randint(4, 12))
        comments.append((words, int(angry)))
    comments[count * 2 // 3] = (rng.choices(STOP_WORDS, k=9), 0)  # “well, so it is then”
    return comments


def clean(words):
    return [word for word in words if word not in STOP_WORDS]


def collate(comments):
    cleaned = [clean(words) for words, _ in comments]
    longest = max(map(len, cleaned))
    words = torch.tensor([line + [0] * (longest - len(line)) for line in cleaned])
    return words, torch.tensor([angry for _, angry in comments])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.score = nn.Linear(32, 1)
        self.head = nn.Linear(32, 2)

    def forward(self, words):
        vectors = self.embed(words)
        scores = self.score(vectors).squeeze(-1).masked_fill(words == 0, float("-inf"))
        weights = torch.softmax(scores, dim=1)
        return self.head((weights.unsqueeze(-1) * vectors).sum(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(write_comments(6_000), batch_size=16, collate_fn=collate)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        for step, (words, angry) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(words), angry)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch}  step {step}  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
