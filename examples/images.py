"""Pictures in folders, some classes rare: plain training, random over-sampling and DOS.

The pictures are scikit-learn's digits, written to PNG files as a folder of one's own would be:
train/ and test/, with a subfolder for every class.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from deep_oversampling import DOSClassifier
from deep_oversampling.data import load

RARE = ["1", "4", "7", "8"]  # they lose nine of ten training pictures
METHODS = {
    "plain": DOSClassifier(minority=None, k=0, rounds=20),
    "random over-sampling": DOSClassifier(k=0, rounds=20),
    "DOS": DOSClassifier(rounds=20),
}


def write_pictures(folder: Path, seed: int) -> None:
    images, labels = load_digits(return_X_y=True)
    pixels = (images.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)
    drawn = np.random.default_rng(seed)
    rows = train_test_split(np.arange(len(labels)), stratify=labels, random_state=seed)
    for part, chosen in zip(("train", "test"), rows, strict=True):
        for i in chosen:
            name = str(labels[i])
            if part == "train" and name in RARE and drawn.random() > 0.1:
                continue
            file = folder / part / name / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels[i]).save(file)


def main(seeds: Sequence[int] = range(3)) -> dict[str, list[float]]:
    """F1 of the rare classes, a value for every seed."""
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(Path(folder, "digits"), seed)
            splits = load(Path(folder, "digits"), cache=Path(folder, "cache"))
            train, test = splits.train, splits.test
            for method, classifier in METHODS.items():
                classifier.set_params(random_state=seed).fit(train.x, train.labels)
                labels = classifier.predict(test.x)
                f1 = f1_score(test.labels, labels, labels=RARE, average="macro")
                found[method].append(float(f1))
    return found


if __name__ == "__main__":
    for method, f1 in main().items():
        print(f"{method:<22} F1 of the rare digits {np.mean(f1):.3f} ± {np.std(f1, ddof=1):.3f}")
