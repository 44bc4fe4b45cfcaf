"""Another loss in place of ℋ inside ℓ_g, and when that is too much of a good thing."""

import torch

from deep_oversampling import Plan, Samples, predict
from deep_oversampling.losses import entropy
from deep_oversampling.rivals import logit_adjusted
from toy import generator, small, train


def test_dos_with_logit_adjustment_makes_up_for_the_counts_twice() -> None:
    """Classes that overlap all go to the rare one; the documentation warns of it."""
    draw = generator()
    y = torch.arange(2).repeat_interleave(torch.tensor([600, 30]))
    x = torch.randn(630, 2, generator=draw) + y.unsqueeze(1)
    samples = Samples(x, y)
    balanced = torch.randn(400, 2, generator=draw)
    recall = {}
    for name, loss in (("once", entropy), ("twice", logit_adjusted(samples.class_counts))):
        network = small(2, 2)
        train(network, samples, Plan.for_minority(samples.class_counts, [1]), rounds=6, loss=loss)
        recall[name] = float((predict(network, balanced).argmax(1) == 0).float().mean())
    assert recall["once"] > 0.5
    assert recall["twice"] < 0.3
