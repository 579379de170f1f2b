"""Autoencoder trained with Lightning on the CPU."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LitAutoEncoder(L.LightningModule):
    def __init__(self, dim=784, hidden=256, code=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        if self.global_step == 5:
            print("READY", flush=True)
        if batch_idx % 100 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, _batch_idx):
        (x,) = batch
        self.log("val_loss", nn.functional.mse_loss(self.decoder(self.encoder(x)), x))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(0)
    torch.set_num_threads(1)
    train = DataLoader(TensorDataset(torch.rand(12_000, 784)), batch_size=64, shuffle=True)
    val = DataLoader(TensorDataset(torch.rand(1_000, 784)), batch_size=64)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=100_000,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(LitAutoEncoder(), train, val)


if __name__ == "__main__":
    main()
