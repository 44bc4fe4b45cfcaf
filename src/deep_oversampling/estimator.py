"""DOSClassifier: scikit-learn's contract over Algorithm 1."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from .arrays import as_array, stays_stored, with_channels
from .augmentation import Augmentation
from .checks import made_loss
from .data.splits import hold_out
from .engine import Engine
from .errors import InputError, TrainingError
from .fitting import fit_many
from .history import History
from .losses import Loss
from .models import small_network
from .network import Network, embed, predict
from .plan import Plan, default_k
from .samples import Samples, as_tensor
from .seeding import isolated, streams
from .selection import Candidate, select
from .stages import Schedule
from .stopping import EarlyStopping
from .views import View

__all__ = ["DOSClassifier"]

# What every method asks of X: numbers, float32 or uint8; anything else becomes float32. A
# read-only array is welcome: X is never written to, and a memory-mapped one is not copied.
_AT_THE_DOOR = {"dtype": [np.float32, np.uint8], "allow_nd": True}


class DOSClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Deep Over-sampling as a scikit-learn classifier, and its embeddings f(x) as a transformer.

    X holds feature vectors (m, d) or images (m, h, w) and (m, c, h, w); a single channel may be
    left out, the network sees (m, 1, h, w). uint8 images stay uint8; everything else becomes
    float32. y holds labels of any type. What `load` makes of a folder of pictures goes in as
    ``fit(train.x, train.labels)`` and is read in batches, however large it is.

    ``network`` is a `Network`, which is copied with the weights it has, or a function that
    makes one from the shape of a sample and the number of classes. Left out, it is a LeNet for
    images and an MLP for vectors, with an input normalisation measured on X.

    ``minority`` names the labels to over-sample; "auto" takes those with less than half the
    samples of the largest class, None treats all classes alike. ``minority=None, k=0`` is plain
    training without DOS. Left out, k is 5 once classes are known (`Plan.cautious`), 0 with
    ``augment``; ``k="auto"`` chooses k and r_times on a fifth of the samples first. ``ensemble``
    networks of other seeds are averaged; on a GPU ten cost little more than one.
    ``early_stopping`` holds out ``validation_fraction`` of every class, ends when
    ``n_iter_no_change`` rounds of DOS have not raised the F1 of the minority on it (of all classes
    where none is favoured), and keeps the best weights; candidates for k are trained to the end.
    ``loss`` makes a loss from the class counts in place of the cross-entropy: ``rivals.ldam``; with
    a margin ``tau`` it trains the initial rounds alone, as in `fit`.
    ``pieces=0.5`` is the form of DOS for pictures that are augmented, as in `fit`: every other one
    shows a piece of a neighbour. With ``minority="auto"`` classes are then levelled in part.

    Training that goes wrong is made good as in `fit`, an ensemble's members one by one, and a
    single ``ConvergenceWarning`` says so; what is lost again is a `TrainingError`.

    After fit: ``classes_``, ``plan_`` ({k_j}, {r_j} in that order), ``histories_`` and
    ``networks_`` of the ensemble, ``history_`` and ``network_`` of its first, ``candidates_`` for
    k (the best first; none unless it is "auto"), ``input_shape_`` and ``input_dtype_`` of a sample,
    ``n_features_in_`` (the second axis of X) and ``feature_names_in_`` where X has column names.

    >>> from sklearn.datasets import load_wine
    >>> X, y = (one[:141] for one in load_wine(return_X_y=True))  # 11 of the third wine
    >>> classifier = DOSClassifier(minority=[2]).fit(X, y)
    >>> classifier.plan_
    Plan(k=[0, 0, 5], r=[1, 1, 6], known=0.6)
    >>> bool(classifier.score(X, y) > 0.95), classifier.transform(X).shape
    (True, (141, 64))
    """

    def __init__(
        self,
        network: Network | Callable[[tuple[int, ...], int], Network] | None = None,
        *,
        minority: str | Sequence[Any] | None = "auto",
        k: int | str | None = None,  # or "auto"; default: 5, cautious, and 0 with augment
        r_times: float = 1.0,  # r = r_times / R
        rounds: int = 30,  # T; enough for iris (2 batches a round); digits take 4 s
        initial_rounds: int | None = None,  # as many as rounds
        batch_size: int | None = None,  # 60, or all samples if there are fewer
        learning_rate: float = 0.01,  # of SGD with momentum 0.9
        pull: float = 10.0,  # λ
        pull_limit: float | None = 0.3,
        weighted: bool = True,
        loss: Callable[[Tensor], Loss] | None = None,  # of the class counts, instead of ℋ
        pieces: float = 0.0,  # the share of pictures that show a piece of a neighbour
        tau: float | None = None,  # of a margin for rare classes; default: 0.5 with pieces
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,  # instead of SGD
        schedule: Schedule | Literal["cosine"] | None = None,  # stepped after every round
        augment: Augmentation | None = None,  # CropAndFlip(), Turn(10), …: of what training sees
        ensemble: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        recover: bool = True,  # a round that is lost is made again, once, with a tenth of the rate
        engine: Engine | None = None,
        device: torch.device | str | None = None,  # cuda, mps or cpu, the first there is
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.network = network
        self.minority = minority
        self.k = k
        self.r_times = r_times
        self.rounds = rounds
        self.initial_rounds = initial_rounds
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.pull = pull
        self.pull_limit = pull_limit
        self.weighted = weighted
        self.loss = loss
        self.pieces = pieces
        self.tau = tau
        self.optimizer = optimizer
        self.schedule = schedule
        self.augment = augment
        self.ensemble = ensemble
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.recover = recover
        self.engine = engine
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike | View,  # (m, d), (m, h, w) or (m, c, h, w)
        y: ArrayLike,  # (m,)
    ) -> DOSClassifier:
        """Train a new network on X and y."""
        x: NDArray[Any] | View
        if stays_stored(X):
            x, labels = X, column_or_1d(np.asarray(y))
            check_consistent_length(X, labels)
            self.n_features_in_ = X.shape[1]
        else:
            array, labels = validate_data(self, as_array(X), y, **_AT_THE_DOOR)
            x = with_channels(array)
        check_classification_targets(labels)
        classes, indices = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise InputError(
                f"y must hold two or more classes, found 1 class, {classes.tolist()}, in "
                f"{len(labels)} sample(s); add samples of another class"
            )
        samples = Samples(x, indices, [str(label) for label in classes])
        counts = samples.class_counts
        seeds = self._seeds()
        self.candidates_: list[Candidate] = []
        train = partial(
            fit_many,
            rounds=self.rounds,
            initial_rounds=self.initial_rounds,
            batch_size=self.batch_size,
            pull=self.pull,
            pull_limit=self.pull_limit,
            weighted=self.weighted,
            loss=made_loss(self.loss, counts),
            pieces=self.pieces,
            tau=self.tau,
            optimizer=self.optimizer or partial(SGD, lr=self.learning_rate, momentum=0.9),
            schedule=self.schedule,
            augment=self.augment,
            device=self.device,
            engine=self.engine,
        )
        kept, held_out, stop = samples, None, None
        if self.early_stopping:  # what is refused is so before candidates are trained
            stop = EarlyStopping(self.n_iter_no_change)
            kept, held_out = hold_out(samples, self.validation_fraction, seed=seeds[0])
        plan_of, k, r_times = partial(self._plan, classes.tolist()), self.k, self.r_times
        k = default_k(augmented=self.augment is not None and not self.pieces) if k is None else k
        if k == "auto":
            first = partial(self._network, samples, seeds[0])
            self.candidates_ = select(
                first, samples, plan_of, train, seed=seeds[0], batch_size=self.batch_size
            )
            k, r_times = self.candidates_[0].k, self.candidates_[0].r_times
        plan = plan_of(kept.class_counts, k, r_times).fitted_to(kept.class_counts, kept.classes)
        plan = plan.cautious() if self.k is None and not self.pieces else plan
        stop = replace(stop, group="majority") if stop and not plan.minority.any() else stop
        self._train(partial(train, validation=held_out, stop=stop), kept, plan, seeds)
        self.history_, self.network_ = self.histories_[0], self.networks_[0]
        _warn_of_mishaps(self.histories_, stop)
        self.classes_, self.plan_ = classes, plan
        self.input_shape_, self.input_dtype_ = tuple(samples.x.shape[1:]), samples.x.dtype
        widths = [embed(one, samples.x[:1]).shape[1] for one in self.networks_]  # d of each
        self._n_features_out = sum(widths)
        return self

    def _train(
        self, train: Callable[..., list[Any]], samples: Samples, plan: Plan, seeds: list[int]
    ) -> None:
        """All at once; who is lost among several is trained anew alone, to be slowed down."""
        networks = [self._network(samples, seed) for seed in seeds]
        alone = self.recover and len(seeds) == 1
        found = train(networks, samples, [plan] * len(seeds), seeds=seeds, recover=alone)
        for e, outcome in enumerate(found):
            if isinstance(outcome, TrainingError) and self.recover and not alone:
                networks[e] = self._network(samples, seeds[e])
                (found[e],) = train([networks[e]], samples, [plan], seeds=[seeds[e]], recover=True)
        if lost := [one for one in found if isinstance(one, TrainingError)]:
            raise lost[0]
        self.histories_: list[History] = found
        self.networks_ = networks

    def _seeds(self) -> list[int]:
        if not isinstance(self.ensemble, Integral) or self.ensemble < 1:
            raise InputError(f"ensemble must be a whole number ≥ 1, found {self.ensemble!r}")
        rng = check_random_state(self.random_state)
        return [int(rng.randint(np.iinfo(np.int32).max)) for _ in range(self.ensemble)]

    def predict(self, X: ArrayLike | View) -> NDArray[Any]:  # (m,)
        """The most probable label of every sample."""
        probabilities = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return labels

    def predict_proba(self, X: ArrayLike | View) -> NDArray[np.float32]:  # (m, n)
        """P(C|x) of every sample, in the order of ``classes_``."""
        x = self._checked(X)
        each = [predict(network, x) for network in self.networks_]
        probabilities: NDArray[np.float32] = torch.stack(each).mean(0).cpu().numpy()
        return probabilities

    def transform(self, X: ArrayLike | View) -> NDArray[np.float32]:  # (m, d)
        """The embedding f(x) of every sample, those of an ensemble side by side."""
        x = self._checked(X)
        each = [embed(network, x) for network in self.networks_]
        embeddings: NDArray[np.float32] = torch.cat(each, 1).cpu().numpy()
        return embeddings

    def _checked(self, X: ArrayLike | View) -> Tensor | View:
        """X as the network of a fitted classifier takes it."""
        check_is_fitted(self, "network_")
        x: Tensor | View
        if stays_stored(X):
            x = X
        else:
            vectors = len(self.input_shape_) == 1  # then scikit-learn compares the features itself
            array = validate_data(self, as_array(X), reset=False, ensure_2d=vectors, **_AT_THE_DOOR)
            x = as_tensor(with_channels(array), "X")
            x = x.float() if self.input_dtype_ == torch.float32 else x
        if (tuple(x.shape[1:]), x.dtype) != (self.input_shape_, self.input_dtype_):
            raise InputError(
                "every sample must have the shape and type of those in fit, "
                f"{self.input_shape_} of {self.input_dtype_}, found {tuple(x.shape[1:])} of "
                f"{x.dtype}; resize or convert them, or fit again"
            )
        return x

    def _plan(self, labels: list[Any], counts: Tensor, k: Any, r_times: float) -> Plan:
        if self.minority is None:
            return Plan.uniform(len(labels), k)
        if isinstance(self.minority, str) and self.minority == "auto":
            if self.pieces:
                if self.r_times != 1:
                    raise InputError(
                        "r_times must be left out with pieces, as r follows from the counts "
                        f"(Plan.in_part), found {self.r_times}; or name the minority"
                    )
                return Plan.in_part(counts, k)
            return Plan.automatic(counts, k, r_times=r_times)
        several = isinstance(self.minority, Iterable) and not isinstance(self.minority, str)
        chosen = list(self.minority) if several else [self.minority]
        if not set(chosen) < set(labels) or not chosen:
            raise InputError(
                f"minority must name some but not all of the labels {labels}, found {chosen}; "
                "pass 'auto' to choose them by their counts, None to treat all classes alike"
            )
        indices = [labels.index(label) for label in chosen]
        return Plan.for_minority(counts, indices, k, r_times=r_times)

    def _network(self, samples: Samples, seed: int) -> Network:
        """A network of this classifier's own, that fits the samples."""
        shape, network = tuple(samples.x.shape[1:]), self.network
        with isolated(streams(seed)("network")):
            if network is None:
                network = small_network(samples, seed=seed)
            elif isinstance(network, nn.Module):
                network = copy.deepcopy(network)
            elif callable(network):
                network = network(shape, samples.n)
            if not isinstance(network, Network):
                raise InputError(
                    "network must be a Network, or a function (input_shape, n_classes) that "
                    f"returns one, found {type(network).__name__}; Network.from_model makes one "
                    "from any model"
                )
        return network

    def __getstate__(self) -> dict[str, Any]:
        """Networks are stored on the CPU, so that a machine without this one's GPU can load."""
        state = dict(super().__getstate__())
        for name, value in state.items():
            if isinstance(value, nn.Module):
                state[name] = copy.deepcopy(value).cpu()
        if "networks_" in state:
            state["networks_"] = [copy.deepcopy(one).cpu() for one in self.networks_]
            state["network_"] = state["networks_"][0]
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _warn_of_mishaps(histories: Sequence[History], stop: EarlyStopping | None) -> None:
    """Once, of all rounds that were lost; what was found at the end is in the history."""
    lost = [mishap for one in histories for mishap in one.mishaps if mishap.rate != 1]
    told = list(dict.fromkeys(map(str, lost)))
    if stop and any(one.kept == len(one.rounds) - 1 for one in histories):
        told.append("early stopping: the last round was the best, so more rounds may be better")
    if told:
        warnings.warn("; ".join(told), ConvergenceWarning, stacklevel=3)
