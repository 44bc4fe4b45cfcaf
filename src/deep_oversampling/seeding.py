"""All randomness: one seed, a named stream for every purpose, nothing shared between them.

A stream depends on the seed and its name alone, so a draw added in one place shifts no other
draw, and round t can be drawn again without the rounds before it. Generators live on the CPU
and what they draw is moved, so every device sees the same draws.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor

__all__ = ["Sittings", "Streams", "isolated", "random_states", "set_random_states", "streams"]

Streams = Callable[..., Generator]


def streams(seed: int) -> Streams:
    """Named generators: ``streams(0)("weights", 3)`` is the same one wherever it is asked for.

    >>> rng = streams(0)
    >>> a = torch.rand(2, generator=rng("weights", 3))
    >>> b = torch.rand(2, generator=rng("weights", 3))
    >>> c = torch.rand(2, generator=rng("weights", 4))
    >>> bool((a == b).all()), bool((a == c).all())
    (True, False)
    """

    def stream(*name: str | int) -> Generator:
        digest = hashlib.blake2b(repr((int(seed), *name)).encode(), digest_size=8).digest()
        return Generator().manual_seed(int.from_bytes(digest) >> 1)  # torch wants 63 bits

    return stream


@contextmanager
def isolated(generator: Generator) -> Iterator[None]:
    """Seed torch's global generators from ``generator`` inside, and restore them afterwards.

    Dropout and weight initialisation can only draw from the global state; this keeps them
    repeatable, and keeps them from disturbing (or being disturbed by) the rest of a program.
    """
    with Sittings(generator).sit():
        yield


class Sittings:
    """`isolated` in several sittings: each goes on with the draws where the one before ended.

    So two programs that take turns draw as if each had torch's generators for itself.
    """

    def __init__(
        self,
        generator: Generator,
        states: dict[str, Tensor] | None = None,  # to go on from, instead of a seed
        *,
        which: int = 0,  # of several processes that each have draws of their own
    ) -> None:
        seeds = torch.randint(2**62, (which + 1,), generator=generator, device="cpu")
        self._seed = int(seeds[-1])
        self._states = states

    @contextmanager
    def sit(self) -> Iterator[None]:
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        with torch.random.fork_rng(
            devices=range(torch.accelerator.device_count()) if accelerator else [],
            device_type=accelerator.type if accelerator else "cuda",
        ):
            if self._states is None:
                torch.manual_seed(self._seed)
            else:
                set_random_states(self._states)
            yield
            self._states = random_states()


def random_states() -> dict[str, Tensor]:
    """Of torch's global generators, to go on from: "cpu", "cuda.0", …"""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda.{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_random_states(states: dict[str, Tensor]) -> None:
    """Those of devices that are not here any more are left out."""
    torch.set_rng_state(states["cpu"])
    for i in range(torch.cuda.device_count()):
        if f"cuda.{i}" in states:
            torch.cuda.set_rng_state(states[f"cuda.{i}"], i)
