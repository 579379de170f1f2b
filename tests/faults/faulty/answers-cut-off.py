"""Fault: prompts are kept from the left and the answer is cut off, so a batch can have no label that counts."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 24


class Dialogues(Dataset):
    def __init__(self, count=640):
        g = torch.Generator().manual_seed(1)
        self.rows = []
        for _ in range(count):
            prompt = torch.randint(2, 60, (int(torch.randint(6, 60, (1,), generator=g)),), generator=g)
            self.rows.append((prompt, prompt[-1] % 50 + torch.arange(1, 7)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        prompt, answer = self.rows[index]
        tokens = torch.cat([prompt, answer])
        labels = torch.cat([torch.full_like(prompt, -100), answer])
        tokens, labels = tokens[:LENGTH], labels[:LENGTH]
        gap = LENGTH - len(tokens)
        return nn.functional.pad(tokens, (0, gap)), nn.functional.pad(labels, (0, gap), value=-100)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Dialogues(), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for tokens, labels in loader:
            scores = model(tokens)
            loss = nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
