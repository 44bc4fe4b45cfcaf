"""DOS in skorch: a net whose epochs present fresh targets, and whose loss is that of DOS.

pip install deep-oversampling skorch
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score
from skorch import NeuralNetClassifier
from torch import Tensor
from torch.utils.data import DataLoader

from deep_oversampling import MicroClusters, Network, Plan, Samples, dos_loss, embed, oversample
from plain_loop import RARE, Net, digits


class DOSNet(NeuralNetClassifier):
    """A NeuralNetClassifier for arrays; half of its epochs are plain, the others DOS.

    ``head`` is the dotted path of the module's last layer.
    """

    def __init__(self, module: Any, *args: Any, head: str = "fc", **options: Any) -> None:
        self.head = head
        super().__init__(module, *args, criterion=torch.nn.CrossEntropyLoss, **options)

    def initialize_module(self) -> Any:
        super().initialize_module()
        self.network_ = Network.from_model(self.module_, self.head)
        return self

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        if not training:
            return super().get_iterator(dataset, training)
        return _Rounds(self, Samples(dataset.X, dataset.y))

    def train_step_single(self, batch: MicroClusters, **fit_params: Any) -> dict[str, Tensor]:
        self._set_training(True)
        batch = batch.to(self.device)
        loss = dos_loss(self.network_, batch)
        loss.backward()
        return {"loss": loss, "y_pred": batch.y}


class _Rounds:
    """skorch makes one iterator for all epochs; every pass over this one draws anew."""

    def __init__(self, net: DOSNet, samples: Samples) -> None:
        self.net, self.samples = net, samples
        self.plan = Plan.automatic(samples.class_counts)

    def __iter__(self) -> Iterator[MicroClusters]:
        net, samples, epoch = self.net, self.samples, len(self.net.history)
        plan = self.plan if epoch > net.max_epochs // 2 else Plan.plain(samples.n)
        v = embed(net.network_, samples.x).to(samples.x.device)
        z = oversample(samples, v, plan, generator=torch.Generator().manual_seed(epoch))
        yield from DataLoader(z, net.batch_size, shuffle=True, collate_fn=MicroClusters.joined)


def main(epochs: int = 30) -> dict[str, float]:
    torch.manual_seed(0)
    train, test = digits()
    net = DOSNet(
        Net,
        max_epochs=epochs,
        batch_size=60,
        lr=0.01,
        optimizer__momentum=0.9,
        train_split=None,
        verbose=0,
    )
    (x, y), (x_test, y_test) = train.tensors, test.tensors
    net.fit(x.numpy(), y.numpy())
    f1 = f1_score(y_test, net.predict(x_test.numpy()), average=None)
    return {"minority": f1[RARE].mean(), "majority": np.delete(f1, RARE).mean()}


if __name__ == "__main__":
    for group, value in main().items():
        print(f"{group} F1 {value:.3f}")
