"""Trees: what is a tensor is changed, joined and listed; what is not stays as it is."""

from functools import partial

import pytest
import torch

from deep_oversampling import Samples
from deep_oversampling.losses import entropy
from deep_oversampling.objectives import multi_task, single_task
from deep_oversampling.rivals import focal, logit_adjusted
from deep_oversampling.trees import Unlike, changed, joined, leaves, outline
from toy import blobs, overloaded

TREES = {
    "tensor": torch.arange(3.0),
    "samples": blobs()[torch.arange(5)],
    "micro-clusters": overloaded(blobs(), blobs().x, [0, 1, 2], [1, 1, 2])[torch.arange(4)],
    "objective": multi_task(10.0, 0.3, loss=logit_adjusted(torch.tensor([3, 2, 1]))),
    "function": entropy,
    "tuple": (torch.ones(2), "name", None, 3),
}
every_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


@every_tree
def test_changed_by_nothing_it_is_the_same(tree) -> None:
    again = changed(tree, torch.clone)
    assert type(again) is type(tree)
    assert outline(again) == outline(tree)
    for one, other in zip(leaves(again), leaves(tree), strict=True):
        assert torch.equal(one, other)
        assert one is not other


@every_tree
def test_every_leaf_is_changed_in_the_order_of_the_leaves(tree) -> None:
    numbers = iter(range(100))
    found = leaves(changed(tree, lambda _: torch.tensor(next(numbers))))
    assert [int(leaf) for leaf in found] == list(range(len(leaves(tree))))


@every_tree
def test_joined_and_taken_apart_it_is_what_it_was(tree) -> None:
    twice = joined([tree, changed(tree, lambda leaf: leaf.clone())], torch.stack)
    for e in (0, 1):
        for one, other in zip(
            leaves(changed(twice, lambda t, e=e: t[e])), leaves(tree), strict=True
        ):
            assert torch.equal(one, other)


def test_samples_keep_their_classes() -> None:
    samples = Samples(torch.rand(3, 2), [0, 1, 1], ["cat", "dog"])
    assert changed(samples, lambda t: t[:2]).classes == ("cat", "dog")
    assert len(changed(samples, lambda t: t[:2])) == 2


def test_an_objective_still_is_one() -> None:
    tree = partial(single_task, loss=logit_adjusted(torch.tensor([3, 1])))
    doubled = changed(tree, lambda offset: 2 * offset)
    logits, y = torch.zeros(2, 2), torch.tensor([0, 1])
    expected = logit_adjusted(torch.tensor([3, 1]), tau=2.0)(logits, y)
    assert torch.allclose(doubled.keywords["loss"](logits, y), expected)


def test_numbers_that_differ_become_tensors() -> None:
    both = joined([multi_task(1.0, 0.3), multi_task(2.5, 0.3)], torch.stack)
    assert both.keywords["pull"].tolist() == [1.0, 2.5]
    assert both.keywords["limit"] == 0.3
    assert joined([multi_task(1.0, None)] * 2, torch.stack).keywords["pull"] == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (multi_task(1.0, 0.3), multi_task(1.0, None)),
        (multi_task(1.0, 0.3), single_task),
        (multi_task(1.0, 0.3, loss=entropy), multi_task(1.0, 0.3, loss=focal())),
        (("a",), ("b",)),
        ((1, 2), (1, 2, 3)),
        (lambda x: x, lambda x: x),
    ],
    ids=["none", "functions", "losses", "names", "lengths", "closures"],
)
def test_what_differs_in_code_cannot_be_joined(one, other) -> None:
    with pytest.raises(Unlike, match="beside"):
        joined([one, other], torch.stack)


def test_outlines_tell_shapes_types_and_functions_apart() -> None:
    trees = [
        torch.zeros(2),
        torch.zeros(3),
        torch.zeros(2, dtype=torch.long),
        (torch.zeros(2),),
        multi_task(1.0, 0.3),
        multi_task(2.0, 0.3),
        multi_task(1.0, 0.3, loss=focal()),
    ]
    assert len({outline(tree) for tree in trees}) == len(trees)
    assert outline(torch.zeros(2)) == outline(torch.ones(2))
