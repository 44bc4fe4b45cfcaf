"""Processes that train together on a GPU: by NCCL, and two that share one, which gloo allows."""

from functools import partial
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from deep_oversampling import Network, Peers
from deep_oversampling.peers import _Group
from deep_oversampling.shared_norm import shared_batch_norm
from many_processes import on_processes
from shared_trainings import KINDS, all_kinds, normed
from toy import generator

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

same = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-10)


def said(peers: Peers, dtype: torch.dtype) -> list[list[Any]]:
    """Tensors of a GPU after all that is done with them between processes."""
    tensors = [torch.arange(6, device="cuda").to(dtype).view(3, 2) for _ in range(2)]
    tensors.append(torch.ones(2, 3, device="cuda", dtype=dtype).T)
    peers.as_first(tensors)
    peers.add_up(tensors)
    if peers.total:
        tensors = [peers.total(tensor) for tensor in tensors]
    assert all(tensor.is_cuda for tensor in tensors)
    return [tensor.tolist() for tensor in tensors]


def backward(network: Network, x: Tensor) -> list[list[float]]:
    """Gradients of the weights and averages of the batch norm."""
    network.train()
    network(x).square().sum().backward()
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    return [tensor.flatten().tolist() for tensor in (*gradients, *network.buffers())]


def by_nccl(alone: Peers) -> list[Any]:
    """One process that speaks to itself, and one that does not speak."""
    dist.init_process_group("nccl")
    pairs: list[Any] = []
    with _Group(made=True) as peers:
        for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
            pairs.append((said(peers, dtype), said(alone, dtype)))
        x = torch.randn(20, 4, dtype=torch.float64, generator=generator()).cuda()
        shared, own = (normed().double().cuda() for _ in range(2))
        with shared_batch_norm(shared, peers):
            pairs.append((backward(shared, x), backward(own, x)))
        pairs.append(([[peers.from_first(lambda: 3.0), peers.most(4)]], [[3.0, 4]]))
        peers.check_alike({"seed": 0})
    return pairs


def test_nccl_does_what_is_asked_of_it() -> None:
    (pairs,) = on_processes(1, by_nccl)
    assert len(pairs) == 6, pairs
    for found, wanted in pairs:
        for one, other in zip(found, wanted, strict=True):
            same(torch.tensor(one), torch.tensor(other))


def test_two_processes_on_one_gpu_train_the_network_of_one() -> None:
    alone = all_kinds(Peers(), "cuda")
    for everything in on_processes(2, all_kinds, "cuda"):
        assert not isinstance(everything, str), everything  # an error
        for kind, (state, losses, _), (theirs, their_losses, _) in zip(
            KINDS, alone, everything, strict=True
        ):
            message = partial("{}: {}".format, kind)
            same(torch.tensor(theirs), torch.tensor(state), rtol=1e-6, atol=1e-7, msg=message)
            same(their_losses, losses, rtol=1e-6, atol=1e-7, msg=message)
