import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Patience:
    def __init__(self, limit):
        self.limit = limit
        self.best_score = -float("inf")
        self.counter = 0
        self.early_stop = False

    def update(self, score):
        self.counter = 0
        if score > self.best_score:
            self.best_score = score
        else:
            self.counter += 1
        if self.counter >= self.limit:
            self.early_stop = True


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.patience = Patience(limit=10)
        self.epoch = 0

    def train_one_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        return right / len(self.val_loader.dataset)

    def fit(self):
        while True:
            self.train_one_epoch()
            accuracy = self.accuracy()
            self.patience.update(accuracy)
            self.epoch += 1
            print(f"epoch {self.epoch}: accuracy {accuracy:.3f}, best {self.patience.best_score:.3f}", flush=True)
            if self.patience.early_stop:
                break


def main():
    torch.manual_seed(1)
    x = torch.randn(2000, 12)
    y = (x[:, :3].sum(1) + 0.8 * torch.randn(2000) > 0).long()
    train_set, val_set = random_split(TensorDataset(x, y), [1600, 400])
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
    trainer = Trainer(model, DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(val_set, batch_size=200))
    trainer.fit()
    print("best accuracy", trainer.patience.best_score)


if __name__ == "__main__":
    main()
