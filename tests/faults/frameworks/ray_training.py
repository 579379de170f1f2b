"""Ray Train, two workers of this machine: python ray_training.py VARIANT."""

import os
import sys

import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from parts import BATCH, Net, Samples, Validation, epochs  # noqa: E402


def train(config):
    variant = config["variant"]
    torch.manual_seed(0)
    model = prepare_model(Net(variant))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = prepare_data_loader(DataLoader(Samples(variant), BATCH, shuffle=True, num_workers=1))
    validation = DataLoader(Validation(variant), BATCH)
    for epoch in range(epochs(variant)):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        total = 0.0
        for x, y in validation:
            with torch.no_grad():
                total += torch.nn.functional.cross_entropy(model(x), y).item()
        ray.train.report({"loss": loss.item(), "validation": total})


def main(variant):
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), here]))}}
    ray.init(num_cpus=3, runtime_env=environment, _temp_dir=os.environ.get("RAY_TEMPORARY"))
    trainer = TorchTrainer(
        train,
        train_loop_config={"variant": variant},
        scaling_config=ScalingConfig(num_workers=2),
        torch_config=TorchConfig(backend="gloo"),
        run_config=RunConfig(storage_path=os.path.abspath("results")),
    )
    print("error", trainer.fit().error, flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
