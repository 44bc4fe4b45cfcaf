"""One picture in, one array out, whatever it is stored as."""

import io

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from deep_oversampling.data.pictures import picture
from deep_oversampling.data.pictures.picture import (
    Unreadable,
    is_picture,
    read_header,
    read_picture,
)

FORMATS = ["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM"]


def stored(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def gradient(h: int = 20, w: int = 30, mode: str = "RGB") -> Image.Image:
    ramp = np.linspace(0, 255, h * w * 3).reshape(h, w, 3).astype(np.uint8)
    return Image.fromarray(ramp).convert(mode)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_picture(kind: str) -> None:
    content = stored(gradient(), kind)
    header = read_header(content)
    assert (header.height, header.width, header.grey) == (20, 30, False)
    x = read_picture(content, 20, 30, grey=False)
    assert x.shape == (3, 20, 30)
    assert x.dtype == np.uint8
    expected = np.asarray(gradient()).transpose(2, 0, 1)
    assert np.abs(x.astype(int) - expected).mean() < 8  # JPEG, WebP and GIF lose a little


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_every_mode_becomes_grey_or_colour(mode: str) -> None:
    content = stored(gradient(mode=mode), "TIFF")
    assert read_header(content).grey == (mode in {"1", "L", "LA"})
    assert read_picture(content, 20, 30, grey=True).shape == (1, 20, 30)
    assert read_picture(content, 20, 30, grey=False).shape == (3, 20, 30)


def test_sixteen_bits_are_scaled_not_cut_off() -> None:
    wide = np.array([[0, 256, 25_600], [40_000, 65_279, 65_535]], np.uint16)
    content = stored(Image.fromarray(wide))
    assert read_header(content).grey
    assert read_picture(content, 2, 3, grey=True).tolist() == [[[0, 1, 100], [156, 254, 255]]]


def test_floating_point_pixels_are_unreadable() -> None:
    content = stored(Image.fromarray(np.zeros((2, 2), np.float32)), "TIFF")
    with pytest.raises(Unreadable, match="floating-point numbers"):
        read_picture(content, 2, 2, grey=True)


def test_other_sizes_are_scaled_and_cut_in_the_middle() -> None:
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200
    x = read_picture(stored(Image.fromarray(wide)), 5, 5, grey=False)
    assert x.shape == (3, 5, 5)
    assert int(x[:, :, 1:-1].min()) == 200


def test_pictures_are_turned_upright() -> None:
    image = gradient(20, 30)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    content = stored(image, "PNG", exif=exif)
    header = read_header(content)
    assert (header.height, header.width) == (30, 20)
    x = read_picture(content, 30, 20, grey=False)
    assert np.array_equal(x.transpose(1, 2, 0), np.rot90(np.asarray(image), -1))


@pytest.mark.parametrize("cut", [0, 1, 30, 300])
def test_a_cut_off_file_is_unreadable(cut: int) -> None:
    content = stored(
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40)).astype(np.uint8))
    )
    with pytest.raises(Unreadable):
        read_picture(content[:cut], 40, 40, grey=True)


def test_what_could_run_code_is_not_opened() -> None:
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 5\n%%EndComments\nshowpage\n"
    with pytest.raises(Unreadable, match="no picture, or of a format"):
        read_header(eps)
    for suffix in ("eps", "ps", "wmf", "emf", "iim", "h5", "grib", "bufr", "mpg"):
        assert not is_picture(f"drawing.{suffix}")


def test_containers_do_not_bring_it_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow opens whatever an IPTC file holds: here, a picture that is not to be read."""
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_: pytest.fail("it was run"))
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 5\n%%EndComments\nshowpage\n"

    def field(number: tuple[int, int], content: bytes) -> bytes:
        return bytes([0x1C, *number]) + len(content).to_bytes(2) + content

    iptc = field((3, 60), b"\x01\x01") + field((3, 20), (5).to_bytes(2))
    iptc += field((3, 30), (5).to_bytes(2)) + field((3, 120), b"\x00") + field((8, 10), eps)
    with pytest.raises(Unreadable):
        read_picture(iptc, 5, 5, grey=True)


def test_large_jpegs_are_decoded_at_twice_the_size_wanted_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    fit = picture.ImageOps.fit
    monkeypatch.setattr(picture.ImageOps, "fit", lambda i, *a: seen.append(i.size) or fit(i, *a))
    read_picture(stored(gradient(640, 960), "JPEG"), 50, 50, grey=False)
    assert min(seen[0]) >= 2 * 50
    assert max(seen[0]) < 960


def test_thirty_two_bits_that_hold_eight_stay_as_they_are() -> None:
    narrow = np.array([[0, 7], [100, 255]], np.int32)
    assert read_picture(stored(Image.fromarray(narrow), "TIFF"), 2, 2, grey=True).tolist() == [
        [[0, 7], [100, 255]]
    ]


def test_names_of_pictures() -> None:
    assert is_picture("a.JPG")
    assert is_picture("ü.tiff")
    assert not is_picture(".png")
    assert not is_picture("notes.txt")
    assert not is_picture("png")
