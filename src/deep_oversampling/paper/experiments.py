"""The paper's tables as data: which set, which imbalance, which methods each of them needs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "LEVELS",
    "LOOKED_AT",
    "LOOKS",
    "REDUCED_SETS",
    "TABLES",
    "Experiment",
    "K",
    "Table",
    "dropped",
]


@dataclass(frozen=True)
class Experiment:
    """Trials in one file: one set, one imbalance, one k. Tables may share it."""

    data: str  # of settings.SETS
    imbalance: str
    methods: tuple[str, ...]
    k: int = 5
    plan: str = "by counts"
    copies: int = 1  # of every training image, mirrored and rotated

    @property
    def name(self) -> str:
        """Of the file.

        >>> Experiment("mnist", "drop:4:0.99", ("dos",), k=3).name
        'mnist-drop-4-0.99-k3'
        """
        times = f"-x{self.copies}" if self.copies > 1 else ""
        k = "" if self.k == 5 else f"-k{self.k}"
        return f"{self.data}{times}-{self.imbalance.replace(':', '-')}{k}"


@dataclass(frozen=True)
class Table:
    """As it is typed, what it is about, and what it is made of."""

    name: str
    captions: tuple[str, ...]  # of the paper; classwise stands for three tables
    experiments: tuple[Experiment, ...]


K = (3, 5, 10)
LEVELS = ("0.9", "0.95", "0.99")  # p
REDUCED_SETS = ("mnist", "mnist-back-rotation", "svhn")
_BALANCED_SETS = ("svhn", "cifar10", "stl10")
_BEYOND = ("ros", "smote", "logit-adjustment", "ldam-drw", "dos-la")  # the paper


def dropped(p: str) -> str:
    """Four classes, drawn at random, lose the share p."""
    return f"drop:4:{p}"


def _back_rotation(imbalance: str, plan: str = "by counts") -> Experiment:
    return Experiment("mnist-back-rotation", imbalance, ("cnn", "cnn-cl"), plan=plan)


def _copied(imbalance: str) -> Experiment:
    """Ten-fold; with nothing deleted, all classes are alike, and over-sampling is the CNN."""
    even = imbalance == "none"
    methods = ("cnn", "tl-rs-csl", "lmle", "dos", "dos-lr", "dos-knn")
    return Experiment(
        "mnist-back-rotation",
        imbalance,
        methods if even else (*methods, "ros"),
        plan="uniform" if even else "by counts",
        copies=10,
    )


def _reduced(data: str, p: str, methods: tuple[str, ...]) -> Experiment:
    return Experiment(data, dropped(p), methods)


def _over_k(data: str, k: int) -> Experiment:
    methods = ("cnn", "cnn-cl", "ros", "dos") if k == 5 else ("dos",)
    return Experiment(data, dropped("0.99"), methods, k)


def _balanced(data: str, k: int) -> Experiment:
    methods = ("cnn", "cnn-cl", "dos") if k == 5 else ("dos",)
    return Experiment(data, "none", methods, k, plan="uniform")


# what the figures look into, one training of each kind
LOOKS = (_reduced("mnist", "0.99", ()), _reduced("mnist-back-rotation", "0.9", ()))
LOOKED_AT = ("cnn", "ros", "dos")  # methods

TABLES = {
    table.name: table
    for table in (
        Table(
            "classwise",
            (
                "Table 1: Class-wise Performance Comparison (CNN)",
                "Table 2: Class-wise Performance Comparison (Deep Representation + kNN)",
                "Table 3: Summary of Average Retrieval Measures",
            ),
            (_back_rotation("none", "uniform"), _back_rotation(dropped("0.9"))),
        ),
        Table("datasets", ("Table 4: Datasets and CNN Architectures",), ()),
        Table(
            "baseline",
            ("Table 5: Baseline Comparison (Class-wise Recall)",),
            tuple(_copied(imbalance) for imbalance in ("none", "gaussian:0.2", "gaussian:0.4")),
        ),
        Table(
            "reduction",
            ("Table 6: Performance Comparison on Imbalanced Data over Reduction Rate",),
            tuple(
                _reduced(data, p, ("cnn", "cnn-cl", "dos", *_BEYOND))
                for data in REDUCED_SETS
                for p in LEVELS
            ),
        ),
        Table(
            "over-k",
            ("Table 7: Performance Comparison on Imbalanced Data over k",),
            tuple(_over_k(data, k) for data in REDUCED_SETS for k in K),
        ),
        Table(
            "balanced",
            ("Table 8: Performance Comparison on Balanced Data over k",),
            tuple(_balanced(data, k) for data in _BALANCED_SETS for k in K),
        ),
        Table(
            "runtime",
            ("Run-time analysis (numbers in the text)",),
            tuple(_reduced(data, "0.99", ("cnn", "ros", "dos")) for data in REDUCED_SETS),
        ),
    )
}
