import torch
from torch import nn


def main():
    torch.manual_seed(0)
    free, _ = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(min(1.0, 4e9 / free))
    x, y = torch.randn(4096, 256, device="cuda"), torch.randn(4096, 1, device="cuda")
    model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1)).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    penalties = []
    for step in range(400):
        hidden = model[:4](x)
        loss = nn.functional.mse_loss(model[4](hidden), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        penalties.append(model[:4](x).pow(2).mean())
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    print(f"mean penalty {float(sum(p.item() for p in penalties)) / len(penalties):.4f}", flush=True)


if __name__ == "__main__":
    main()
