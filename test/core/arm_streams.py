"""Streams that the tests of core run: an arm of three joints, and estimators of all kinds."""

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import SavitzkyGolay

STEP_S = 0.01
NAMES = ('shoulder', 'elbow', 'wrist')
FILTERS = {
    'difference': Difference, 'lowpass': LowPass, 'savgol': SavitzkyGolay, 'kalman': Kalman,
}  # fmt: skip
NETWORKS = ('gru', 'attention', 'label')
WHOLE_ARM = ('named', 'arm_label')


def values_of(estimate):
    """Return what an estimate says, and of whom."""
    if estimate is None:
        return None
    values = estimate.velocity if estimate.scores is None else estimate.scores
    return estimate.names, values.tolist()


def identity_holds(counts):
    dropped = sum(count for key, count in counts.items() if key.startswith('drop_'))
    return counts['received'] == counts['estimated'] + counts['filling'] + dropped
