import torch
from torch import nn


def main():
    torch.manual_seed(0)
    free, _ = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(min(1.0, 3e9 / free))
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).cuda()
    head = nn.Linear(64, 10).cuda()
    opt = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    for step in range(40):
        images = torch.randn(96, 3, 96, 96, device="cuda")
        labels = torch.randint(0, 10, (len(images),), device="cuda")
        loss = nn.functional.cross_entropy(head(model(images).mean(dim=(2, 3))), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
