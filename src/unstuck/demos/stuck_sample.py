"""A text classifier whose tokenizer never gets past one of its 20,000 log lines."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = "disk full retry timeout user login failed ok cache miss hit node up down slow".split()


def write_logs(count, seed=0):
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        words = rng.choices(WORDS, k=rng.randint(60, 90))
        words[rng.randrange(len(words))] = f'"{rng.choice(WORDS)} {rng.choice(WORDS)}"'
        lines.append(" ".join(words))
    lines[count // 3] = 'node 17 said "disk full and was gone'  # the message was cut off: no closing quote
    return lines


def tokenize(line):
    """Words, with quoted phrases kept together."""
    tokens, position = [], 0
    while position < len(line):
        if line[position] == '"':
            end = line.find('"', position + 1)
            if end > position:
                tokens.append(line[position + 1 : end])
                position = end + 1
        elif line[position] == " ":
            position += 1
        else:
            end = position
            while end < len(line) and line[end] not in ' "':
                end += 1
            tokens.append(line[position:end])
            position = end
    return tokens


class LogLines(Dataset):
    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        line = self.lines[index]
        counts = torch.zeros(256)
        for token in tokenize(line):
            counts[sum(map(ord, token)) % 256] += 1
        return counts, int(line.count("failed") > line.count("ok"))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(LogLines(write_logs(20_000)), batch_size=32, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for step, (counts, failed) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(counts), failed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch}  step {step}  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
