import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def watch_layer(layer):
    seen = []

    def hook(module, inputs, output):
        seen.append(output)

    layer.register_forward_hook(hook)
    return seen


def main():
    torch.manual_seed(0)
    x, y = torch.randn(8000, 128), torch.randint(0, 10, (8000,))
    loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    activations = watch_layer(model[2])
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(16):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} mean activation {activations[-1].mean().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
