"""The Trainer of transformers: python hf_trainer.py VARIANT."""

import sys
import warnings

import torch
from parts import BATCH, Net, Samples, Validation, epochs, rate
from transformers import Trainer, TrainingArguments

warnings.filterwarnings("ignore")


class Classifier(torch.nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.net = Net(variant)

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def collate(samples):
    x, y = zip(*samples)
    return {"x": torch.stack(x), "labels": torch.stack(y)}


def main(variant):
    arguments = TrainingArguments(
        output_dir="trained",
        num_train_epochs=epochs(variant),
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        learning_rate=rate(variant),
        lr_scheduler_type="constant",
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_num_workers=2,
        seed=0,
    )
    trainer = Trainer(
        Classifier(variant),
        arguments,
        data_collator=collate,
        train_dataset=Samples(variant),
        eval_dataset=Validation(variant),
    )
    trainer.train()
    print("done", trainer.state.global_step, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
