"""A training loop as one writes it in PyTorch. Compare dos_loop.py: their diff is the lesson."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 30
RARE = [1, 4, 7, 8]  # digits that lose nine of ten training images


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten()
        )
        self.hidden = nn.Linear(32 * 4 * 4, 64)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.hidden(self.features(x)).relu())


def digits() -> tuple[TensorDataset, TensorDataset]:
    """Half of scikit-learn's digits to train on, some of them rare, and half to test."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 1, 8, 8).astype(np.float32)
    x, x_test, y, y_test = train_test_split(
        images, labels, test_size=0.5, stratify=labels, random_state=0
    )
    kept = ~np.isin(y, RARE) | (np.random.default_rng(0).random(len(y)) < 0.1)
    x, y, x_test, y_test = map(torch.from_numpy, (x[kept], y[kept], x_test, y_test))
    return TensorDataset(x, y), TensorDataset(x_test, y_test)


def main(seed: int = 0) -> dict[str, float]:
    torch.manual_seed(seed)
    train, test = digits()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(train, batch_size=60, shuffle=True)

    for _ in range(EPOCHS):
        model.train()
        for x, y in loader:
            loss = cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        found = torch.cat([model(x).argmax(1) for x, _ in DataLoader(test, batch_size=256)])
    f1 = f1_score(test.tensors[1], found, average=None)
    return {"minority": f1[RARE].mean(), "majority": np.delete(f1, RARE).mean()}


if __name__ == "__main__":
    for group, value in main().items():
        print(f"{group} F1 {value:.3f}")
