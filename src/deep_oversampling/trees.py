"""Batches and objectives as trees, whose tensors can be gathered, stacked and replaced.

A tree is a tensor, a dataclass, a tuple or a ``functools.partial`` of trees; everything else in
it (a function, a name, a number) is a constant. So what differs between two trainings is tensors
and what is alike is code, and a stack of trainings is one tree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from .errors import InputError

__all__ = ["Unlike", "changed", "joined", "leaves", "outline"]

T = TypeVar("T")


class Unlike(InputError):
    """Trees that cannot be joined."""

    def __init__(self, first: Any, trees: Sequence[Any]) -> None:
        other = next(tree for tree in trees if tree is not first)
        super().__init__(
            "what is trained at once must be asked alike but for tensors and numbers, found "
            f"{first!r} beside {other!r}; use the same functions, or train one after the other"
        )


def changed(tree: T, change: Callable[[Tensor], Tensor]) -> T:
    """The tree with every tensor replaced.

    >>> changed((torch.ones(2), "name"), lambda tensor: 2 * tensor)
    (tensor([2., 2.]), 'name')
    """
    if isinstance(tree, Tensor):
        return change(tree)  # type: ignore[return-value]
    parts = _parts(tree)
    return tree if parts is None else _rebuilt(tree, [changed(part, change) for part in parts])


def leaves(tree: Any) -> list[Tensor]:
    """The tensors, always in the same order."""
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for part in _parts(tree) or [] for leaf in leaves(part)]


def joined(trees: Sequence[T], join: Callable[[list[Tensor]], Tensor]) -> T:
    """One tree of many that are alike but for their tensors and numbers.

    >>> joined([(torch.tensor(1), "a", 0.5), (torch.tensor(2), "a", 0.5)], torch.stack)
    (tensor([1, 2]), 'a', 0.5)
    """
    first: Any = trees[0]
    if all(isinstance(tree, Tensor) for tree in trees):
        return join(list(trees))  # type: ignore[arg-type,return-value]
    if all(tree is first for tree in trees) and not leaves(first):
        return trees[0]
    if any(type(tree) is not type(first) for tree in trees):
        raise Unlike(first, trees)
    if isinstance(first, int | float | str | tuple | None) and _parts(first) is None:
        if all(tree == first for tree in trees):
            return trees[0]
        if isinstance(first, float):
            return join([torch.tensor(tree) for tree in trees])  # type: ignore[return-value]
    parts = [_parts(tree) for tree in trees]
    if any(p is None or len(p) != len(parts[0] or ()) for p in parts):
        raise Unlike(first, trees)
    columns = zip(*(p for p in parts if p is not None), strict=True)
    return _rebuilt(trees[0], [joined(column, join) for column in columns])


def outline(tree: Any) -> Hashable:
    """All of a tree but the values in its tensors."""
    if isinstance(tree, Tensor):
        return tuple(tree.shape), tree.dtype
    parts = _parts(tree)
    if parts is None:
        return tree if isinstance(tree, Hashable) else id(tree)
    names = tuple(tree.keywords) if isinstance(tree, partial) else ()
    return type(tree), names, tuple(map(outline, parts))


def _parts(tree: Any) -> list[Any] | None:
    """What a tree is made of; None for a constant."""
    if isinstance(tree, partial):
        return [tree.func, *tree.args, *tree.keywords.values()]
    if is_dataclass(tree) and not isinstance(tree, type):
        return [getattr(tree, field.name) for field in fields(tree)]
    if type(tree) is tuple and not all(isinstance(part, str) for part in tree):
        return list(tree)
    return None  # names of classes, too: a thousand of them would be looked at in every step


def _rebuilt(tree: T, parts: list[Any]) -> T:
    made: Any
    if isinstance(tree, partial):
        function, values = parts[0], parts[1:]
        positional = len(tree.args)
        named = zip(tree.keywords, values[positional:], strict=True)
        made = partial(function, *values[:positional], **dict(named))
    elif is_dataclass(tree):
        made = object.__new__(type(tree))  # as it was: it has been checked when it was made
        for field, part in zip(fields(tree), parts, strict=True):
            object.__setattr__(made, field.name, part)
    else:
        made = tuple(parts)
    result: T = made
    return result
