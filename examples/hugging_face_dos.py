"""DOS in Hugging Face's Trainer, for a small BERT of one layer, trained from nothing.

Docstrings of Python's standard library, as in text.py; the embedding is what BERT gives to its
last layer. Nothing is downloaded: for a model that is there, use from_pretrained instead.

pip install deep-oversampling transformers accelerate
"""

import copy
import tempfile
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

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
from text import LENGTH, PACKAGES, RARE, WORDS, corpus


class Logits(nn.Module):
    """BERT as a function of token ids alone: 0 is padding, and what comes out are logits."""

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, ids: Tensor) -> Tensor:
        # a docstring without a known word still has a first token to look at
        mask = (ids > 0) | (torch.arange(ids.shape[1], device=ids.device) == 0)
        return self.bert(input_ids=ids, attention_mask=mask).logits


class Rounds:
    """The Trainer asks for one loader; every pass over this one draws its targets anew."""

    def __init__(self, network: Network, samples: Samples, batch_size: int) -> None:
        self.network, self.samples, self.batch_size = network, samples, batch_size
        self.plan = Plan.automatic(samples.class_counts)
        self.draws = torch.Generator().manual_seed(0)

    def __len__(self) -> int:
        rows = int((self.plan.r * self.samples.class_counts).sum())
        return -(-rows // self.batch_size)

    def __iter__(self) -> Iterator[dict[str, MicroClusters]]:
        v = embed(self.network, self.samples.x).to(self.samples.x.device)
        z = oversample(self.samples, v, self.plan, generator=self.draws)
        loader = DataLoader(z, self.batch_size, shuffle=True, collate_fn=MicroClusters.joined)
        yield from ({"batch": batch} for batch in loader)  # the Trainer wants a mapping


class DOSTrainer(Trainer):
    """A Trainer for rounds of DOS, of a model that was trained as usual before."""

    def __init__(self, network: Network, samples: Samples, **options: Any) -> None:
        super().__init__(model=network, train_dataset=samples, **options)
        self.network, self.samples = network, samples

    def get_train_dataloader(self) -> Rounds:
        return Rounds(self.network, self.samples, self.args.train_batch_size)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        return dos_loss(self.network, inputs["batch"].to(self.args.device))


class PlainTrainer(Trainer):
    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        return cross_entropy(model(inputs["ids"]), inputs["labels"])


def bert() -> Logits:
    config = BertConfig(
        vocab_size=WORDS + 1,
        hidden_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LENGTH,
        num_labels=len(PACKAGES),
        pad_token_id=0,
    )
    return Logits(BertForSequenceClassification(config))


def main(epochs: int = 10) -> dict[str, float]:
    """F1 of the rare packages after plain training, and after as many epochs more, of either."""
    torch.manual_seed(0)
    train, test = corpus(0)
    network = Network.from_model(bert(), head="bert.classifier")
    rows = [{"ids": ids, "labels": y} for ids, y in zip(train.x, train.y, strict=True)]
    found = {}

    def note(name: str, trained: Network) -> None:
        report = measure(predict(trained, test.x), test.y)
        found[name] = report.mean(RARE)["f1"]

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=32,
            learning_rate=1e-3,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            logging_strategy="no",
            use_cpu=True,
        )
        PlainTrainer(model=network, args=arguments, train_dataset=rows).train()
        note("plain", network)
        longer = copy.deepcopy(network)
        PlainTrainer(model=longer, args=arguments, train_dataset=rows).train()
        note("plain, then plain", longer)
        DOSTrainer(network, train, args=arguments).train()
        note("plain, then DOS", network)
    return found


if __name__ == "__main__":
    # the Trainer prints a summary of its own after each training
    for name, f1 in main().items():
        print(f"{name:<17} F1 of the rare packages {f1:.3f}")
