"""A bag of estimates, to be looked at beside the recording that they come from."""

from pathlib import Path

import numpy as np

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bag_writer import BagWriter
from seqmem_ros.offline.bag_writer import new_bag
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.degrade import Degrader
from seqmem_ros.offline.evaluate import Setting
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result

PREFIX = '/seqmem'


def write_estimates(out: str | Path, result: Result, setting: Setting) -> int:
    """
    Write what every estimator said, as the node would have published it, and the reference.

    Topics are ``/seqmem/<estimator>/joint_states``, or ``.../label`` and ``.../label_scores``,
    and ``/seqmem/reference/joint_states``. Stamps, frames and positions are those that the
    estimators saw, record times those of the recording.

    :param out: folder to make; it must not exist
    :param result: of an evaluation
    :param setting: with which it was made
    :returns: number of messages written
    :raises SeqmemError: if the folder exists or cannot be made
    """
    degrader = Degrader(setting.degradation)
    first = 0
    with new_bag(out) as bag:
        sink = _Sink(bag, result)
        blocks = read_joint_blocks(
            result.bag, setting.selection.with_topic(result.topic), lambda warning: None
        )
        for block in blocks:
            kept, worse = degrader.block(block)
            for index, row in enumerate(first + kept):
                sink.take(int(row), worse, index)
            first += len(block)
    return sink.count


class _Sink:
    """Writes the estimates of one row after the other."""

    def __init__(self, bag: BagWriter, result: Result) -> None:
        self._bag = bag
        self._result = result
        self._column_of = {name: n for n, name in enumerate(result.recording.names)}
        self.count = 0

    def take(self, row: int, block: JointBlock, index: int) -> None:
        names = block.names or self._result.options.assume_joint_order
        if len(names) != block.position.shape[1]:
            return
        self._velocity('reference', self._result.reference.velocity, row, block, index, names)
        for name, each in self._result.estimators.items():
            if each.task == 'velocity':
                self._velocity(name, each.outputs, row, block, index, names)
            else:
                self._labels(name, each, row, block, index, names)

    def _velocity(
        self,
        name: str,
        outputs: np.ndarray,
        row: int,
        block: JointBlock,
        index: int,
        names: tuple[str, ...],
    ) -> None:
        told = [
            (joint, position, float(outputs[row, self._column_of[joint]]))
            for joint, position in zip(names, block.position[index])
            if joint in self._column_of and np.isfinite(outputs[row, self._column_of[joint]])
        ]
        if not told:
            return
        joints, position, velocity = zip(*told)
        stamp_ns, record_ns = int(block.stamp_ns[index]), int(block.record_ns[index])
        sample = JointSample(stamp_ns or record_ns, joints, np.array(position), np.array(velocity))
        self._bag.joint_state(
            f'{PREFIX}/{_topic(name)}/joint_states', record_ns, sample, block.frame_id
        )
        self.count += 1

    def _labels(
        self,
        name: str,
        each: EstimatorResult,
        row: int,
        block: JointBlock,
        index: int,
        names: tuple[str, ...],
    ) -> None:
        columns = [0] if each.whole_arm else [self._column_of.get(joint, -1) for joint in names]
        scores = each.outputs[row, columns].astype(np.float64)
        good = np.isfinite(scores).all(axis=1) & (np.array(columns) >= 0)
        if not good.any():
            return
        labels = tuple(each.labels[best] for best in scores[good].argmax(axis=1))
        told = names if each.whole_arm else tuple(n for n, is_good in zip(names, good) if is_good)
        estimate = Estimate(
            int(block.stamp_ns[index]), told, np.empty(0), scores=scores[good], labels=labels
        )
        self._bag.labels(
            f'{PREFIX}/{_topic(name)}',
            int(block.record_ns[index]),
            estimate,
            each.labels,
            each.whole_arm,
        )
        self.count += 2


def _topic(name: str) -> str:
    """Make a name of a topic: letters, digits and underscores, not a digit first."""
    good = ''.join(letter if letter.isalnum() and letter.isascii() else '_' for letter in name)
    return good if good and not good[0].isdigit() else f'_{good}'
