"""Training by a number of steps over a shuffled stream of sentences."""

import random

import torch
from torch import nn

WORDS = 120


def sentences(count, rng):
    for _ in range(count):
        topic = rng.randrange(3)
        yield [rng.randrange(40) + 40 * topic for _ in range(12)], topic


def batched(stream, size):
    tokens, topics = [], []
    for words, topic in stream:
        tokens.append(words)
        topics.append(topic)
        if len(tokens) == size:
            yield torch.tensor(tokens), torch.tensor(topics)
            tokens, topics = [], []


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.EmbeddingBag(WORDS, 16), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    batches = batched(sentences(6400, random.Random(0)), 16)
    step, wanted = 0, 1000
    while step < wanted:
        for tokens, topic in batches:
            loss = nn.functional.cross_entropy(model(tokens), topic)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"step {step} of {wanted} loss {loss.item():.4f}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
