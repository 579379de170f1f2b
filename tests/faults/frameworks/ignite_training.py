"""Ignite: python ignite_training.py VARIANT."""

import sys

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Loss
from parts import BATCH, Net, Samples, Validation, epochs, rate
from torch.utils.data import DataLoader


def main(variant):
    torch.manual_seed(0)
    model = Net(variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(variant))
    criterion = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, criterion)
    evaluator = create_supervised_evaluator(model, metrics={"loss": Loss(criterion)})
    validation = DataLoader(Validation(variant), BATCH)

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate(engine):
        evaluator.run(validation)
        print(engine.state.epoch, engine.state.output, evaluator.state.metrics["loss"], flush=True)

    trainer.run(DataLoader(Samples(variant), BATCH, shuffle=True, num_workers=2), max_epochs=epochs(variant))


if __name__ == "__main__":
    main(sys.argv[1])
