"""Algorithm 1: CNN training with Deep Over-sampling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from .augmentation import Augmentation
from .embeddings import embed_classes
from .losses import Loss, adjusted, entropy
from .network import Network
from .objectives import multi_task, single_task
from .oversampling import oversample
from .peers import Peers
from .pieces import with_pieces
from .plan import Plan
from .samples import Samples
from .seeding import Streams
from .stages import Stage

__all__ = ["deep_over_sampling"]


def deep_over_sampling(
    network: Network,
    samples: Samples,  # 𝒳
    plan: Plan,  # {k_j}, {r_j}
    *,
    rounds: int,  # T
    initial_rounds: int,
    rng: Streams,
    pull: float = 10.0,
    pull_limit: float | None = 0.3,
    weighted: bool = True,
    loss: Loss = entropy,  # in place of ℋ
    tau: float = 0.0,  # multi-task rounds have ℋ of logits plus τ log π, whatever ``loss`` is
    pieces: float = 0.0,  # the share of pictures with a piece of a neighbour; ℋ as with τ
    approximate_above: int | None = None,
    augment: Augmentation | None = None,  # what training sees; so v is that of such copies
    done: int = 0,  # rounds of both kinds that the network has been trained for
    peers: Peers | None = None,  # processes that share the work
) -> Iterator[Stage]:
    """Algorithm 1, a stage for every pass; the network is trained between them."""
    for _ in range(done, initial_rounds):  # line 5: STL(𝒳)
        yield Stage("single", samples, partial(single_task, loss=loss))
    margined = adjusted(entropy, samples.class_counts, tau) if tau or pieces else loss
    total = peers.total if peers else None
    for t in range(max(done - initial_rounds, 0), rounds):  # line 6
        v = embed_classes(  # lines 7–9: v_i = f(x_i)
            network,
            samples,
            plan.k > 0,
            augment=augment,
            generator=rng("views", t),
            peers=peers,
        )
        z = oversample(  # lines 10–21: 𝒩(x), w, 𝒵′
            samples,
            v,
            plan,
            generator=rng("weights", t),
            weighted=weighted,
            approximate_above=approximate_above,
            peers=peers,
        )
        table = with_pieces(z, pieces, generator=rng("pieces", t)) if pieces else z
        objective = multi_task(pull, pull_limit, loss=margined, total=total)
        yield Stage("multi", table, objective, spread=v.spread)  # line 22: MTL(𝒵′)
