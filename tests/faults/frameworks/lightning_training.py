"""Lightning: python lightning_training.py VARIANT."""

import sys
import warnings

import lightning
import torch
from parts import BATCH, Net, Samples, Validation, epochs, rate
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")


class Classifier(lightning.LightningModule):
    def __init__(self, variant):
        super().__init__()
        self.net = Net(variant)

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", torch.nn.functional.cross_entropy(self.net(x), y), batch_size=len(x))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=rate(self.net.variant))


def main(variant):
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        max_epochs=epochs(variant) if variant != "overfit" else 40,
        overfit_batches=1 if variant == "overfit" else 0.0,
        num_sanity_val_steps=0,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(
        Classifier(variant),
        DataLoader(Samples(variant), BATCH, shuffle=variant != "overfit", num_workers=2),
        DataLoader(Validation(variant), BATCH) if variant != "overfit" else None,
    )
    print("done", trainer.global_step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
