"""What goes wrong, in words: what must hold, what was found, what to do."""

__all__ = ["DOSError", "InputError", "PeerLost", "Stopped", "TrainingError"]


class DOSError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(DOSError, ValueError):
    """Data, labels, a plan or an argument that cannot be used as it is."""


class PeerLost(DOSError):
    """Another process of the same training has ended, or cannot be reached."""


class Stopped(DOSError):
    """A training ended because it was asked to; it can go on from its checkpoint."""


class TrainingError(DOSError, RuntimeError):
    """Training went wrong; the network holds the last good weights."""
