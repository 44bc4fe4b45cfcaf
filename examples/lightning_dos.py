"""DOS in PyTorch Lightning: the module gives a fresh loader in every epoch.

pip install deep-oversampling lightning
"""

import logging
import warnings

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from deep_oversampling import (
    MicroClusters,
    Network,
    Plan,
    Samples,
    dos_loss,
    embed,
    measure,
    oversample,
    predict,
)
from plain_loop import RARE, Net, digits


class Classifier(lightning.LightningModule):
    def __init__(self, model: torch.nn.Module, samples: Samples, head: str) -> None:
        super().__init__()
        self.network, self.samples = Network.from_model(model, head), samples
        self.plan = Plan.automatic(samples.class_counts)

    def train_dataloader(self) -> DataLoader:
        """Called in every epoch (reload_dataloaders_every_n_epochs=1): targets are drawn anew."""
        epoch, all_epochs = self.current_epoch, self.trainer.max_epochs
        plan = self.plan if epoch >= all_epochs // 2 else Plan.plain(self.samples.n)
        v = embed(self.network, self.samples.x).to(self.samples.x.device)
        z = oversample(self.samples, v, plan, generator=torch.Generator().manual_seed(epoch))
        return DataLoader(z, batch_size=60, shuffle=True, collate_fn=MicroClusters.joined)

    def training_step(self, batch: MicroClusters, _: int) -> Tensor:
        return dos_loss(self.network, batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def main(epochs: int = 30) -> dict[str, float]:
    torch.manual_seed(0)
    train, test = digits()
    module = Classifier(Net(), Samples(*train.tensors), head="fc")
    trainer = lightning.Trainer(
        max_epochs=epochs,
        reload_dataloaders_every_n_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module)
    report = measure(predict(module.network, test.tensors[0]), test.tensors[1])
    common = [j for j in range(10) if j not in RARE]
    return {"minority": report.mean(RARE)["f1"], "majority": report.mean(common)["f1"]}


if __name__ == "__main__":
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*num_workers.*")  # the digits are in memory
    for group, value in main().items():
        print(f"{group} F1 {value:.3f}")
