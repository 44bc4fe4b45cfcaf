"""A table of measurements: plain training, SMOTE, random over-sampling and DOS, one network.

scikit-learn's breast cancer data, of which one malignant tumour in ten is kept for training. SMOTE
(imbalanced-learn's) mixes rows of the table, DOS mixes where they are in the network.
"""

from collections.abc import Sequence

import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from deep_oversampling import DOSClassifier

MALIGNANT = 0


def methods(seed: int) -> dict[str, object]:
    plain = DOSClassifier(minority=None, k=0, random_state=seed)
    return {
        "plain": make_pipeline(StandardScaler(), plain),
        "SMOTE": make_pipeline(StandardScaler(), SMOTE(random_state=seed), plain),
        "random over-sampling": make_pipeline(
            StandardScaler(), DOSClassifier(k=0, random_state=seed)
        ),
        "DOS": make_pipeline(StandardScaler(), DOSClassifier(random_state=seed)),
    }


def main(seeds: Sequence[int] = range(5)) -> dict[str, list[float]]:
    """F1 of the malignant tumours, a value for every seed."""
    X, y = load_breast_cancer(return_X_y=True)
    found: dict[str, list[float]] = {}
    for seed in seeds:
        x, x_test, labels, truth = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=seed
        )
        kept = (labels != MALIGNANT) | (np.random.default_rng(seed).random(len(labels)) < 0.1)
        for method, model in methods(seed).items():
            guessed = model.fit(x[kept], labels[kept]).predict(x_test)
            f1 = f1_score(truth, guessed, pos_label=MALIGNANT)
            found.setdefault(method, []).append(float(f1))
    return found


if __name__ == "__main__":
    for method, f1 in main().items():
        print(f"{method:<22} F1 of the rare tumours {np.mean(f1):.3f} ± {np.std(f1, ddof=1):.3f}")
