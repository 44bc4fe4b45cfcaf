"""Ways to damage a file: bytes of any kind, and documents in their structure."""

import json
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load, save

Mutation = Callable[[bytes, random.Random], bytes]

EXTREMES = (0, 1, 2**7 - 1, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
EXTREMES += (2**63, 2**64 - 1, 10**13)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", -1, 0, 1, 2**31, 2**63, 2**64, 10**30, -(10**30), 1e300, 0.5),
    *([], {}, [[]], [None], {"": None}, [0] * 50, "\0", "\ud800", "<script>", "../../x", "/etc/x"),
    *("\x1b[2J", "[red]", "[/]", ":car:", "a\nb", "\u202e"),
    *(float("inf"), float("nan"), "9" * 400, "a.py:b", "timm:hf-hub:a/b"),
)


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[_place(changed, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def splice(content: bytes, rng: random.Random) -> bytes:
    """A piece of it again somewhere else: put between, or over what was there."""
    start, to = (_place(content, rng) for _ in range(2))
    piece = content[start : start + rng.choice((1, 4, 16, 256))] * rng.choice((1, 1, 2, 100))
    return content[:to] + piece + content[to + rng.choice((0, len(piece))) :]


def cut_out(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    return content[:start] + content[start + rng.choice((1, 2, 4, 8, 100)) :]


def extreme_integer(content: bytes, rng: random.Random) -> bytes:
    """As a head of a file has them, of either order of bytes."""
    width, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    value = rng.choice(EXTREMES) % (1 << 8 * width)
    start = _place(content, rng)
    return content[:start] + value.to_bytes(width, order) + content[start + width :]


def noise(content: bytes, rng: random.Random) -> bytes:
    start, length = _place(content, rng), rng.choice((1, 4, 32, 512))
    return content[:start] + rng.randbytes(length) + content[start + length :]


def other_text(content: bytes, rng: random.Random) -> bytes:
    """A word or number of a text in place of another one."""
    words = content.split()
    if not words:
        return b"\0"
    given = [
        *words,
        b"nan",
        b"-1",
        b"1e400",
        b"0x" + b"f" * 300,
        b"[" * 3000,
        b"{",
        b'"',
        b"9" * 99,
    ]
    return content.replace(rng.choice(words), rng.choice(given), rng.choice((1, 1, -1)))


BYTES: tuple[Mutation, ...] = (truncate, flip, splice, cut_out, extreme_integer, noise)
TEXT: tuple[Mutation, ...] = (*BYTES, other_text, other_text, other_text)


def _place(content: bytes | bytearray, rng: random.Random) -> int:
    """Anywhere, but half of the time among the first bytes, where heads are."""
    most = len(content) if rng.random() < 0.5 else min(len(content), 256)
    return rng.randrange(max(1, most))


def other_json(content: bytes, rng: random.Random) -> bytes:
    """One value of a document left out, doubled, wrapped, or another one in its place."""
    document = json.loads(content)
    for _ in range(rng.choice((1, 1, 1, 3))):
        document = _changed(document, rng)
    text = json.dumps(document)
    if rng.random() < 0.01:
        text = text.replace("null", "[" * 100_000 + "]" * 100_000, 1)
    return text.encode("utf-8", "surrogateescape")


def _changed(node: Any, rng: random.Random) -> Any:
    """This value, or one below it."""
    if isinstance(node, dict | list) and node and rng.random() < 0.85:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if rng.random() < 0.1:
            other = node.copy()
            other.pop(key)
            return other
        if isinstance(node, dict):
            return {**node, key: _changed(node[key], rng)}
        return [*node[:key], _changed(node[key], rng), *node[key + 1 :]]
    return rng.choice((rng.choice(VALUES), rng.choice(VALUES), [node], {"": node}, [node, node]))


def of_safetensors(content: bytes, rng: random.Random) -> bytes:
    """Its head is JSON behind a length: changed, with the length that is true or another one."""
    size = int.from_bytes(content[:8], "little")
    head = content[8 : 8 + size]
    about = json.loads(head).get("__metadata__", {}).get("about")
    if about and rng.random() < 0.7:  # JSON within JSON
        inner = other_json(about.encode(), rng).decode()
        head = json.dumps({**json.loads(head), "__metadata__": {"about": inner}}).encode()
    else:
        head = other_json(head, rng)
    length = len(head) if rng.random() < 0.9 else rng.choice(EXTREMES) % 2**64
    return length.to_bytes(8, "little") + head + content[8 + size :]


def inner_json(content: bytes, rng: random.Random) -> bytes:
    """What a checkpoint says of itself, one number or word of it another."""
    size = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["about"])
    settings = about.pop("settings")  # others are refused at once
    for _ in range(rng.choice((1, 1, 2))):
        about = _changed(about, rng)
    told = {**about, "settings": settings} if isinstance(about, dict) else about
    return bytes(save(load(content), {"about": json.dumps(told)}))


def other_tensor(content: bytes, rng: random.Random) -> bytes:
    """A file that is whole, with a tensor that does not fit: left out, renamed, changed, new."""
    size = int.from_bytes(content[:8], "little")
    about = json.loads(content[8 : 8 + size]).get("__metadata__")
    tensors = load(content)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(list(tensors))
        change = rng.choice((_without, _renamed, _swapped, *(_revalued,) * 4, *(_reshaped,) * 3))
        tensors = change(tensors, name, rng)
    return bytes(save(tensors, about))


Arrays = dict[str, np.ndarray]


def _without(tensors: Arrays, name: str, rng: random.Random) -> Arrays:
    return {other: array for other, array in tensors.items() if other != name} or tensors


def _renamed(tensors: Arrays, name: str, rng: random.Random) -> Arrays:
    """Or again under another name, which may be that of another one."""
    kind, _, rest = name.partition(".")
    kinds = ("weights", "optimizer", "start", "best", "halfway", "random", "x")
    other = rng.choice(
        (f"{rng.choice(kinds)}.{rest}", f"{kind}.-1.{rest}", f"{kind}.99.x", f"{name}x", "")
    )
    kept = tensors if rng.random() < 0.5 else _without(tensors, name, rng)
    return {**kept, other: tensors[name]}


def _swapped(tensors: Arrays, name: str, rng: random.Random) -> Arrays:
    other = rng.choice(list(tensors))
    return {**tensors, name: tensors[other], other: tensors[name]}


def _reshaped(tensors: Arrays, name: str, rng: random.Random) -> Arrays:
    array = tensors[name]
    ways = (
        array.reshape(-1),
        array[None],
        array[..., None],
        array.T,
        array[:0] if array.ndim else array[None],
        array.reshape(-1)[:1].reshape(()) if array.size else array,
        np.concatenate([array.reshape(-1)] * 2),
        array.astype(rng.choice(_TYPES)),
        array.astype(rng.choice(_TYPES)),
    )
    return {**tensors, name: np.ascontiguousarray(rng.choice(ways))}


def _revalued(tensors: Arrays, name: str, rng: random.Random) -> Arrays:
    array = tensors[name].copy()
    value = rng.choice((math.nan, math.inf, -math.inf, 1e38, -1e38, 0.0, -1.0, 2.0**62, -(2.0**62)))
    with np.errstate(all="ignore"):
        value = np.asarray(value).astype(array.dtype)  # what whole numbers make of it
    if array.size and rng.random() < 0.5:
        array.reshape(-1)[rng.randrange(array.size)] = value
    else:
        array[...] = value
    return {**tensors, name: array}


_TYPES = ("float64", "float16", "int64", "int8", "uint8", "bool", "complex64")


def other_line(content: bytes, rng: random.Random) -> bytes:
    """Of JSON lines, one is another."""
    lines = content.splitlines()
    i = rng.randrange(len(lines))
    return b"\n".join([*lines[:i], other_json(lines[i], rng), *lines[i + 1 :]]) + b"\n"


JSON: tuple[Mutation, ...] = (*TEXT, *(other_json,) * 10)
TENSORS: tuple[Mutation, ...] = (*BYTES, *(of_safetensors,) * 6, *(other_tensor,) * 12)
INSIDE: tuple[Mutation, ...] = (*(inner_json,) * 4, *(other_tensor,) * 6)  # always a true format
LINES: tuple[Mutation, ...] = (*TEXT, *(other_line,) * 10)
