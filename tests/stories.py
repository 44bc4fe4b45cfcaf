"""Stories made up for the tests: nothing is trained for them."""

from dataclasses import replace
from typing import Any

import numpy as np

from deep_oversampling.report import Mistake, Moment, OverSampled, Story

NASTY = (
    "</script><script>alert(1)</script><b>",
    "\"'><img src=x onerror=alert(2)>",
    "🦆 éèñ",
    "‮עברית",
    '=1+1, "quoted"\nsecond line',
    "long " * 40,
    "<!--",
    "${title} $style \\u003c",
)


def some_probabilities(
    labels: np.ndarray, n: int, skill: float, generator: np.random.Generator
) -> np.ndarray:
    logits = generator.normal(size=(len(labels), n))
    logits[np.arange(len(labels)), labels] += skill
    raised = np.exp(2 * logits)
    return (raised / raised.sum(1, keepdims=True)).astype(np.float32)


def some_history(method: str, rounds: int) -> dict[str, Any]:
    def one(t: int) -> dict[str, Any]:
        multi = t >= rounds
        groups = {g: {"f1": 0.5 + 0.02 * t} for g in ("minority", "majority")}
        return {
            "task": "multi" if multi else "single",
            "presented": 100,
            "classifier_loss": 2.0 / (1 + t),
            "embedding_loss": 0.3 / (1 + t) if multi and method == "dos" else 0.0,
            "seconds": 0.1,
            "validation": groups,
        }

    spreads = [{"within": 3.0 - 0.1 * t, "between": 5.0 + t} for t in range(rounds + 1)]
    return {"rounds": [one(t) for t in range(2 * rounds)], "spreads": spreads}


def story(
    n: int = 4,
    t: int = 200,
    *,
    baseline: bool = True,
    pictures: bool = True,
    moments: int = 3,
    rounds: int = 4,
    skills: tuple[float, float] = (1.0, 1.6),
    **others: Any,
) -> Story:
    """The last half of the classes is rare; skills are those of plain and DOS."""
    generator = np.random.default_rng(7)
    methods = ("plain", "dos") if baseline else ("dos",)
    labels = generator.permutation(np.arange(t) % n)
    minority = tuple(range(n - max(1, n // 2), n))
    counts = np.where(np.isin(np.arange(n), minority), 10, 100)
    p = dict(zip(("plain", "dos"), skills, strict=True))

    def image(*shape: int) -> np.ndarray | None:
        return generator.integers(256, size=shape, dtype=np.uint8) if pictures else None

    values: dict[str, Any] = {
        "title": "A made-up run",
        "classes": tuple(f"class {j}" for j in range(n)),
        "minority": minority,
        "counts": counts,
        "presented": np.where(counts == 10, 100, 100),
        "k": np.where(counts == 10, 5, 0),
        "labels": labels,
        "probabilities": {m: some_probabilities(labels, n, p[m], generator) for m in methods},
        "histories": {m: some_history(m, rounds) for m in methods},
        "moments": tuple(
            Moment(f"after round {i}", generator.normal(size=(60, 2)).astype(np.float32))
            for i in range(moments)
        ),
        "moment_labels": labels[np.arange(60) % t],
        "over_sampled": tuple(
            OverSampled(
                j,
                image(8, 8),
                f"row {j}",
                0.4,
                tuple((image(8, 8, 3), f"row {i}", 0.1) for i in range(6)),
            )
            for j in minority[:3]
        ),
        "mistakes": {m: (Mistake(minority[0], 0, 0.9, image(90, 70), "row 3"),) for m in methods},
        "facts": {"data": "made up", "versions": "deep-oversampling 0"},
    }
    return Story(**{**values, **others})


def nasty_story() -> Story:
    """Every text in it tries to break out."""
    n = len(NASTY)
    made = story(n)
    return replace(
        made,
        title=NASTY[0],
        classes=NASTY,
        facts={name: name for name in NASTY},
        moments=tuple(Moment(name, made.moments[0].points) for name in NASTY),
        over_sampled=tuple(
            OverSampled(j, None, NASTY[j], 0.5, ((None, f"{NASTY[j]}'s", 0.5),)) for j in range(n)
        ),
        mistakes={"dos": tuple(Mistake(j, 0, 0.5, None, NASTY[j]) for j in range(n))},
    )
