"""What pieces and margins must be, said in one sentence."""

import pytest

from contests import pictures, small_lenet
from deep_oversampling import DOSClassifier, InputError, Plan, fit, oversample, with_pieces
from deep_oversampling.rivals import focal
from test_pieces import pieced, trained
from toy import blobs, generator


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pieces": 1.5}, "pieces must be a share between 0 and 1"),
        ({"pieces": -0.1}, "pieces must be a share between 0 and 1"),
        ({"pieces": "0.5"}, "pieces must be a share between 0 and 1, found '0.5'"),
        ({"pieces": None}, "pieces must be a share between 0 and 1, found None"),
        ({"tau": -1.0}, "tau must be a finite number of 0 or more, found -1.0"),
        ({"tau": float("nan")}, "tau must be a finite number of 0 or more, found nan"),
        ({"tau": "1"}, "tau must be a finite number of 0 or more, found '1'"),
        ({"tau": 1.0, "loss": focal(), "initial_rounds": 0}, "leave the loss out, or tau and"),
        (
            {"pieces": 0.5, "tau": 0.0, "loss": focal(), "initial_rounds": 0},
            "found initial_rounds=0",
        ),
        ({"pieces": 0.5, "weighted": False}, "weights of their areas"),
        ({"pieces": 0.5, "plan": Plan.plain(3)}, "k = 0 for all classes"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trained(**options)


def test_pieces_are_of_pictures() -> None:
    samples = blobs()
    with pytest.raises(InputError, match=r"must be of pictures, shape \(m, c, h, w\)"):
        fit(small_lenet(), samples, pieces=0.5)
    z = oversample(samples, samples.x, Plan.uniform(3, 2), generator=generator())
    with pytest.raises(InputError, match="must be of pictures"):
        with_pieces(z, 0.5, generator=generator())
    with pytest.raises(InputError, match="0 rows with neighbours; make the table of pictures by"):
        pieced(plan=Plan.plain(3))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "half", None])
def test_a_table_of_ones_own_has_a_share_of_pieces(share: object) -> None:
    with pytest.raises(InputError, match="pieces must be a share between 0 and 1, found"):
        pieced(share)  # type: ignore[arg-type]


def test_r_follows_from_the_counts() -> None:
    images = pictures((30, 12, 6))
    made = DOSClassifier(pieces=0.5, k=2, r_times=2.0, device="cpu")
    with pytest.raises(InputError, match="r_times must be left out with pieces"):
        made.fit(images.x.numpy(), images.y.numpy())
