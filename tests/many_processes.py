"""Real processes that train together, and what each of them has to say in the end."""

import multiprocessing
import os
import socket
from collections.abc import Callable
from typing import Any

from deep_oversampling import join_peers

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["deep_oversampling", "torch._dynamo"])  # once, for all of them


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def on_processes(size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What the function, given peers first, returns in each; or its error, as text."""
    port, ends, processes = free_port(), [], []
    for rank in range(size):
        ours, theirs = _CONTEXT.Pipe(duplex=False)
        told = (rank, size, port, theirs, function, arguments)
        processes.append(_CONTEXT.Process(target=_one, args=told))
        processes[-1].start()
        theirs.close()
        ends.append(ours)
    try:
        return [end.recv() for end in ends]
    finally:
        for process in processes:
            process.join(20)
            process.kill()


def _one(
    rank: int, size: int, port: int, end: Any, function: Callable[..., Any], arguments: Any
) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_PORT": str(port)}
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    try:
        with join_peers("cpu") as peers:
            said = function(peers, *arguments)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    end.send(said)
