"""The names that a library which writes the loop has for things: its settings in a fix, its counts in the evidence.

A rule says which setting its fix changes, and to what (`Fix.setting`, `Fix.value`); the table says how that is written
where the loop belongs to a library. A setting that is the user's own there too (a DataLoader, an optimizer) needs no
entry, unless it hides in a place of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from unstuck.model import Case, Finding, Fix, Setting
from unstuck.recorder.records.loops import LibraryLoop, LibraryName
from unstuck.rules.remedies import BOUNDED, GUARD, PLATEAU, SKIP, TIMEOUT
from unstuck.text import listed

NAMES: dict[LibraryName, str] = {
    "lightning": "Lightning",
    "transformers": "the Trainer of transformers",
    "accelerate": "Accelerate",
    "ignite": "Ignite",
    "fastai": "fastai",
}
WORDS: dict[LibraryName, dict[Setting, str]] = {
    "lightning": {
        "accumulation": "`Trainer(accumulate_grad_batches=…)` and a smaller batch",
        "clipping": "`Trainer(gradient_clip_val={value})`",
        "learning rate": "`lr={value}` in `configure_optimizers`",
        "weight decay": "`weight_decay={value}` in `configure_optimizers`",
        "schedule": '`{{"scheduler": …, "interval": "epoch"}}` (or "step") in `configure_optimizers`',
        "epochs": "`Trainer(max_epochs=…)`",
        "validation batches": "`Trainer(limit_val_batches=…)`",
        "precision": '`Trainer(precision="bf16-mixed")`',
        "unused parameters": '`Trainer(strategy="ddp_find_unused_parameters_true")`',
    },
    "transformers": {
        "workers": "`TrainingArguments(dataloader_num_workers={value})`",
        "persistent workers": "`TrainingArguments(dataloader_persistent_workers=True)`",
        "prefetching": "`TrainingArguments(dataloader_num_workers=…, dataloader_prefetch_factor=…)`",
        "shuffling": '`TrainingArguments(train_sampling_strategy="random")`',
        "drop last": "`TrainingArguments(dataloader_drop_last=True)`",
        "accumulation": "`TrainingArguments(per_device_train_batch_size=…, gradient_accumulation_steps=…)`",
        "clipping": "`TrainingArguments(max_grad_norm={value})`",
        "learning rate": "`TrainingArguments(learning_rate={value})`",
        "weight decay": "`TrainingArguments(weight_decay={value})`",
        "schedule": "`TrainingArguments(lr_scheduler_type=…, warmup_steps=…)`",
        "epochs": "`TrainingArguments(num_train_epochs=…)`",
        "validation batches": "`Trainer(eval_dataset=…)` needs a dataset that ends",
        "precision": "`TrainingArguments(bf16=True)`",
        "unused parameters": "`TrainingArguments(ddp_find_unused_parameters=True)`",
    },
    "accelerate": {
        "accumulation": "`Accelerator(gradient_accumulation_steps=…)`, `with accelerator.accumulate(model):` and a "
        "smaller batch",
        "clipping": "`accelerator.clip_grad_norm_(model.parameters(), {value})` after `accelerator.backward(loss)`",
        "schedule": "`accelerator.prepare(scheduler)`, which steps it once for every process",
        "precision": '`Accelerator(mixed_precision="bf16")`',
        "unused parameters": "`Accelerator(kwargs_handlers=[DistributedDataParallelKwargs("
        "find_unused_parameters=True)])`",
    },
    "ignite": {
        "accumulation": "`create_supervised_trainer(…, gradient_accumulation_steps=…)` and a smaller batch",
        "clipping": "`Engine(update)` with an update function that clips between backward and step",
        "schedule": "`trainer.add_event_handler(Events.EPOCH_COMPLETED, …)`, or ITERATION_COMPLETED",
        "epochs": "`trainer.run(loader, max_epochs=…)`",
        "validation batches": "`evaluator.run(loader, epoch_length=…)`",
    },
    "fastai": {
        "workers": "`DataLoaders.from_dsets(…, num_workers={value})`",
        "persistent workers": "`DataLoaders.from_dsets(…, persistent_workers=True)`",
        "prefetching": "`DataLoaders.from_dsets(…, bs=…, num_workers=…)`",
        "shuffling": "`DataLoaders.from_dsets(…, shuffle=True)`",
        "drop last": "`DataLoaders.from_dsets(…, drop_last=True)`",
        "accumulation": "`Learner(…, cbs=GradientAccumulation(…))` and a smaller `bs`",
        "clipping": "`Learner(…, cbs=GradientClip({value}))`",
        "learning rate": "`learn.fit(…, lr={value})`",
        "weight decay": "`Learner(…, wd={value})`",
        "schedule": "`learn.fit_one_cycle(…)` or `learn.fit(…)` without a scheduler",
        "epochs": "`learn.fit(…)` with more epochs",
        "precision": "`learn.to_bf16()`",
    },
}
HEAL = " # or train on without such samples:\n+unstuck run --on-hang heal train.py  # in the shell"
REMEDIES: dict[LibraryName, dict[str, str | None]] = {  # for one that is written for a loop of one's own; None: none
    "lightning": {
        GUARD: " # or leave such steps out and train on, in configure_optimizers:\n+unstuck.guard(optimizer)",
        BOUNDED: " # or let every pass end:\n+Trainer(limit_train_batches=…, limit_val_batches=…)",
        PLATEAU: ' # or stop when a metric no longer improves:\n+Trainer(callbacks=[EarlyStopping(monitor="…")])',
    },
    "transformers": {
        GUARD: " # or leave such steps out and train on:\n optimizer = torch.optim.AdamW(…)\n"
        "+unstuck.guard(optimizer)\n+trainer = Trainer(…, optimizers=(optimizer, None))",
        BOUNDED: " # or let every pass end:\n+Trainer(…, eval_dataset=list(itertools.islice(eval_dataset, 1000)))",
        PLATEAU: " # or stop when a metric no longer improves:\n"
        "+Trainer(…, callbacks=[EarlyStoppingCallback(early_stopping_patience=…)])",
        SKIP: HEAL,
        TIMEOUT: HEAL,
    },
    "ignite": {
        BOUNDED: " # or let every pass end:\n+evaluator.run(loader, epoch_length=1000)",
        PLATEAU: " # or stop when a metric no longer improves:\n"
        "+EarlyStopping(patience=…, score_function=…, trainer=trainer)",
    },
    "fastai": {
        GUARD: None,  # its optimizers are not torch's
        PLATEAU: " # or stop when a metric no longer improves:\n+Learner(…, cbs=EarlyStoppingCallback(patience=…))",
        SKIP: None,  # nor are its loaders
        TIMEOUT: None,
    },
}


def in_library_words(case: Case, finding: Finding) -> Finding:
    """The same finding, for somebody who knows the run by the names of a library."""
    loops = [loop for loop in case.library_loops if finding.where.pid in (None, loop.pid)] or list(case.library_loops)
    if not loops:
        return finding
    counted = _count(loops, finding.where.step) if finding.where.step is not None else ""
    return replace(
        finding,
        evidence=(*finding.evidence, counted) if counted else finding.evidence,
        fix=_fix(finding.fix, loops[-1].library),
    )


def _fix(fix: Fix, library: LibraryName) -> Fix:
    text, diff = fix.text, fix.diff
    if fix.setting is not None and fix.setting in WORDS[library]:
        words = WORDS[library][fix.setting].format(value=fix.value or "…")
        text = f"{text} In {NAMES[library]}: {words}."
    if diff is not None:
        diff = REMEDIES.get(library, {}).get(diff, diff)
    return replace(fix, text=text, diff=diff)


def _count(loops: list[LibraryLoop], step: int) -> str:
    """`in Lightning: epoch 1, global_step 57; it logs train_loss, val_loss`."""
    place = bisect_right([loop.step for loop in loops], step) - 1
    if place < 0:
        return ""
    before = loops[place]
    after = loops[place + 1] if place + 1 < len(loops) else None
    said = []
    if before.epoch is not None and (after is None or after.epoch is None or after.epoch - before.epoch <= 1):
        said.append(f"epoch {before.epoch}")
    if before.global_step is not None:
        said.append(f"{_GLOBAL_STEP[before.library]} {before.global_step + step - before.step:,}")
    if not said:
        return ""
    metrics = next((loop.metrics for loop in reversed(loops) if loop.metrics), [])
    return f"in {NAMES[before.library]}: {', '.join(said)}" + (f"; it logs {listed(metrics)}" if metrics else "")


_GLOBAL_STEP: dict[LibraryName, str] = {
    "lightning": "global_step",
    "transformers": "global_step",
    "accelerate": "step",
    "ignite": "iteration",
    "fastai": "train_iter",
}
