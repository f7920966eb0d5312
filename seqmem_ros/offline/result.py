"""What an evaluation found, and its JSON form."""

from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.health import Health
from seqmem_ros.offline.labels import LabelScore
from seqmem_ros.offline.metrics import LagCurve
from seqmem_ros.offline.metrics import Score
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.reference import DEGREE
from seqmem_ros.offline.reference import Reference
from seqmem_ros.offline.truth import summarise
from seqmem_ros.offline.truth import TruthCheck


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """
    One estimator on one recording.

    :ivar task: ``'velocity'`` or ``'label'``
    :ivar outputs: rad/s, shape (T, J), or probabilities, shape (T, J, L) or (T, 1, L); NaN
        where it gave no estimate
    :ivar total: over all joints that move; None if it cannot be scored
    :ivar per_joint: by name of the joint
    :ivar counts: of the stream
    :ivar note: why it is not scored, or empty
    :ivar expected: indices of the true labels, shape (T, J) or (T, 1), -1 where there is none;
        None if it cannot be scored, or estimates velocity
    :ivar whole_arm: whether it gives one label for the whole arm
    :ivar curve: squared error against lag over all joints that move; None for labels
    """

    task: str
    labels: tuple[str, ...]
    source: str
    digest: str
    outputs: np.ndarray
    counts: Mapping[str, int]
    total: Score | LabelScore | None = None
    per_joint: Mapping[str, Score | LabelScore] = field(default_factory=dict)
    note: str = ''
    expected: np.ndarray | None = None
    whole_arm: bool = False
    curve: LagCurve | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """
    Estimators compared on one recording.

    :ivar moving: joints that move, bool, shape (J,)
    :ivar compared: where every velocity estimator has an estimate and there is a reference,
        bool, shape (T, J)
    """

    bag: str
    topic: str
    frame_id: str
    recording: Recording
    reference: Reference
    degradation: Degradation
    options: StreamOptions
    health: Health
    truth: Mapping[str, TruthCheck]
    moving: np.ndarray
    compared: np.ndarray
    estimators: Mapping[str, EstimatorResult]
    warnings: tuple[str, ...]

    @property
    def input(self) -> str:
        """What the estimators saw, in words."""
        text = str(self.degradation)
        return 'as recorded' if text == 'none' else f'as recorded, then {text}'

    @property
    def still_joints(self) -> tuple[str, ...]:
        """Names of the joints that never move."""
        return tuple(name for name, moves in zip(self.recording.names, self.moving) if not moves)

    @property
    def scored_joints(self) -> np.ndarray:
        """Joints that enter a total: those that move, or all if none does; bool, shape (J,)."""
        return self.moving if self.moving.any() else np.ones_like(self.moving)

    def to_json(self) -> dict[str, Any]:
        """
        Turn the numbers, not the series, into what JSON can hold.

        :returns: dictionaries, lists, strings and numbers; None for NaN
        """
        doubt = self.reference.doubt_rad_s[self.scored_joints]
        doubt = doubt[np.isfinite(doubt)]
        content = {
            'bag': self.bag,
            'topic': self.topic,
            'frame_id': self.frame_id,
            'joints': self.recording.names,
            'still_joints': self.still_joints,
            'total_over': 'moving joints' if self.moving.any() else 'all joints',
            'compared_samples': int(self.compared.sum()),
            'reference': {
                'method': str(self.reference),
                'degree': DEGREE,
                'half_width_s': self.reference.half_width_s,
                'doubt_rad_s': np.sqrt(np.mean(doubt**2)) if len(doubt) else None,
            },
            'degradation': {'summary': str(self.degradation), **asdict(self.degradation)},
            'stream': asdict(self.options),
            'order': self.recording.order,
            'health': {**asdict(self.health), 'jitter_s': self.health.jitter_s},
            'truth_check': {'summary': summarise(dict(self.truth)), 'joints': self.truth},
            'estimators': {name: _entry(each) for name, each in self.estimators.items()},
            'warnings': self.warnings,
        }
        return plain(content)


def _entry(result: EstimatorResult) -> dict[str, Any]:
    """Put the total beside what the estimator is."""
    return {
        'task': result.task,
        'labels': result.labels,
        'source': result.source,
        'digest': result.digest,
        'whole_arm': result.whole_arm,
        **(_shallow(result.total) if result.total else {}),
        'counts': result.counts,
        'per_joint': result.per_joint,
        'note': result.note,
    }


def _shallow(value: Any) -> dict[str, Any]:
    content = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    if isinstance(value, LabelScore):
        content['median_delay_s'] = value.median_delay_s
    return content


def plain(value: Any) -> Any:
    """
    Turn anything of a result into what JSON can hold.

    :param value: dataclass, mapping, array, list or scalar
    :returns: dictionaries, lists, strings and numbers; None for NaN
    """
    if is_dataclass(value):
        return plain(_shallow(value))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
