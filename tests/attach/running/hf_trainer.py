"""Causal language modelling of a small random GPT-2 with the Hugging Face Trainer."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class RandomText(Dataset):
    def __init__(self, n, length, vocab):
        self.tokens = torch.randint(0, vocab, (n, length), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.tokens[i]}


class Announce(TrainerCallback):
    def on_step_end(self, _args, state, _control, **_kwargs):
        if state.global_step == 2:
            print("READY", flush=True)


def main():
    torch.set_num_threads(1)
    config = GPT2Config(vocab_size=2000, n_positions=128, n_embd=128, n_layer=4, n_head=4)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=10_000,
            per_device_train_batch_size=8,
            learning_rate=5e-4,
            logging_steps=20,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=RandomText(4000, 128, config.vocab_size),
            callbacks=[Announce()],
        )
        trainer.train()


if __name__ == "__main__":
    main()
