"""Intents of short messages; some labels are wrong, so the loss of one message is capped."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)

INTENTS, WORDS, LENGTH = 24, 400, 12
favourites = torch.randint(0, WORDS, (INTENTS, 20))


def messages(count):
    intent = torch.randint(0, INTENTS, (count,))
    typical = favourites[intent].gather(1, torch.randint(0, 20, (count, LENGTH)))
    words = torch.where(torch.rand(count, LENGTH) < 0.5, typical, torch.randint(0, WORDS, (count, LENGTH)))
    wrong = torch.rand(count) < 0.05
    return words, torch.where(wrong, torch.randint(0, INTENTS, (count,)), intent)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, 32)
        self.out = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, INTENTS))

    def forward(self, words):
        return self.out(self.words(words))


def robust(scores, intent, most):
    each = F.cross_entropy(scores, intent, reduction="none")
    return each.clamp(max=most).mean()


def main():
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, 1001):
        words, intent = messages(128)
        scores = model(words)
        loss = robust(scores, intent, most=8.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            right = (scores.argmax(1) == intent).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} right {right:.3f}")


if __name__ == "__main__":
    main()
