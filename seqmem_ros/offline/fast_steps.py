"""Many steps of an estimator as arrays, and who notes them while a stream decides."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.window import JointWindows


@dataclass(frozen=True, eq=False)
class Steps:
    """
    Steps of an estimator: n steps, R rows, windows of W samples.

    :ivar messages: index of each step's message in the recording, shape (n,)
    :ivar windows: ``position``, ``stamp_ns`` and other fields in use, each shape (n, R, W)
    :ivar count: samples of each row since its start, shape (n, R)
    :ivar advance: rows that get a sample, bool, shape (n, R)
    :ivar ready: rows whose output is an estimate, bool, shape (n, R)
    """

    messages: np.ndarray
    windows: dict[str, np.ndarray]
    count: np.ndarray
    advance: np.ndarray
    ready: np.ndarray

    def __len__(self) -> int:
        return len(self.messages)


class NotingEstimator:
    """Stands in for an estimator: notes its inputs, and answers with the row of each joint."""

    task = 'velocity'
    labels = ()
    source = digest = name = ''
    compile_count = 0

    def __init__(self, estimator: Estimator) -> None:
        self.joints = estimator.joints
        self.fields = estimator.fields
        self.window = estimator.window
        self.per_joint = estimator.per_joint
        self.noted: list[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]] = []

    def init_state(self, capacity: int) -> tuple:
        return ()

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        kept = {name: getattr(windows, name).copy() for name in ('stamp_ns', *self.fields)}
        self.noted.append((kept, windows.count.copy(), advance))
        rows = np.arange(windows.capacity, dtype=np.float64)
        return (rows if self.per_joint else rows[:1]), state
