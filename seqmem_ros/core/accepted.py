"""What the rules let through."""

from typing import NamedTuple

import numpy as np


class Accepted(NamedTuple):
    """
    Values that one step takes: those of one message, or a vector merged of several.

    ``stamp_ns`` is one for all or shape (n,); ``received`` are the positions as they came,
    ``position`` those without wraps, ``measured`` the other fields that the estimator reads.
    """

    rows: np.ndarray
    names: tuple[str, ...]
    stamp_ns: int | np.ndarray
    received: np.ndarray
    position: np.ndarray
    measured: dict[str, np.ndarray]
