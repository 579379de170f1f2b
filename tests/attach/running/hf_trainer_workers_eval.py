"""Hugging Face Trainer on a tiny BERT classifier: two loader workers, gradient accumulation, frequent evaluation."""

import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments


class Reviews(Dataset):
    def __init__(self, n, seed):
        self.n = n
        self.seed = seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        ids = torch.randint(5, 1000, (96,), generator=g)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(ids[0] > 500)}


class Announce(TrainerCallback):
    def on_step_end(self, _args, state, _control, **_kwargs):
        if state.global_step == 2:
            print("READY", flush=True)


def accuracy(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, -1) == prediction.label_ids).mean())}


def main():
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512
    )
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=1000,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=4,
            per_device_eval_batch_size=32,
            eval_strategy="steps",
            eval_steps=10,
            logging_steps=10,
            dataloader_num_workers=2,
            dataloader_persistent_workers=True,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        Trainer(
            model=BertForSequenceClassification(config),
            args=args,
            train_dataset=Reviews(20_000, seed=0),
            eval_dataset=Reviews(1_500, seed=10**6),
            compute_metrics=accuracy,
            callbacks=[Announce()],
        ).train()


if __name__ == "__main__":
    main()
