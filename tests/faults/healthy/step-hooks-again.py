import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x, y = torch.randn(6400, 20), torch.randint(0, 4, (6400,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    norms = {}

    def note_norm(module, inputs, output):
        norms["hidden"] = output.detach().norm().item()

    model[0].register_forward_hook(note_norm)
    for epoch in range(2):
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} norm {norms['hidden']:.3f}", flush=True)


if __name__ == "__main__":
    main()
