"""Lightning run with worker processes that spends its time in a long validation epoch."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Series(Dataset):
    def __init__(self, n, length=256):
        self.n = n
        self.length = length

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        walk = torch.randn(self.length + 1, 8, generator=g).cumsum(0) / 16
        return walk[:-1], walk[1:]


class Forecaster(L.LightningModule):
    def __init__(self, hidden=128):
        super().__init__()
        self.rnn = nn.LSTM(8, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 8)

    def forward(self, x):
        return self.head(self.rnn(x)[0])

    def training_step(self, batch, _batch_idx):
        x, y = batch
        return nn.functional.l1_loss(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.l1_loss(self(x), y)
        self.log("val_mae", loss)
        if batch_idx == 0 and not self.trainer.sanity_checking:
            print("READY", flush=True)
        if batch_idx % 20 == 0:
            print(f"validation batch {batch_idx} mae {loss.item():.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    torch.set_num_threads(1)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=5,
        limit_train_batches=4,
        num_sanity_val_steps=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(
        Forecaster(),
        DataLoader(Series(1_000), batch_size=16, num_workers=1, shuffle=True),
        DataLoader(Series(2_000_000), batch_size=32, num_workers=1),
    )
