import torch
from torch import nn


def main():
    torch.manual_seed(0)
    anchors = torch.randn(4000, 24)
    encode = nn.Linear(24, 16)
    opt = torch.optim.SGD(encode.parameters(), lr=0.02)
    centre = torch.zeros(16)
    for step in range(400):
        batch = anchors[torch.randint(0, 4000, (64,))]
        features = encode(batch)
        centre = 0.99 * centre.detach() + 0.01 * features.mean(0)
        loss = (features - centre).pow(2).mean() + 0.1 * (features.std(0) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
