"""A recording with every fault that there is, in blocks as a bag gives them."""

import numpy as np

from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.bags import write_joint_bag

START_NS = 1_700_000_000_000_000_000
NAMES = ('shoulder', 'elbow', 'wrist')


def clean_samples(count, names=NAMES, start=0):
    """Return samples at 200 Hz of joints that move on different sines."""
    samples = []
    for index in range(start, start + count):
        phase = 0.005 * index * np.arange(1.0, len(names) + 1.0)
        position = np.round(np.sin(3.0 * phase) * 2048) / 2048
        samples.append(JointSample(START_NS + index * 5_000_000, names, position))
    return samples


def messy_samples(count=900):
    """Break samples in all ways that a stream has a rule for."""
    samples = clean_samples(count)
    samples[100].position[1] = np.nan  # a value
    samples[150].position[:] = np.inf  # all values
    for index in range(200, 207):  # so many that a joint starts again
        samples[index].position[2] = np.nan
    samples[250] = JointSample(samples[249].stamp_ns, NAMES, samples[250].position)  # a duplicate
    samples[300:302] = [samples[301], samples[300]]  # one overtakes another
    del samples[350:360]  # a short gap
    del samples[400:470]  # a long gap
    samples[450] = JointSample(samples[450].stamp_ns, NAMES[:2], samples[450].position[:2])
    turned = samples[500]
    samples[500] = JointSample(turned.stamp_ns, NAMES[::-1], turned.position[::-1])
    samples[550] = JointSample(samples[550].stamp_ns, NAMES, samples[550].position[:1])
    samples[560] = JointSample(0, NAMES, samples[560].position)
    gripper = [
        JointSample(sample.stamp_ns + 1_000_000, ('gripper',), sample.position[:1])
        for sample in samples[600:640:2]
    ]
    samples = samples[:600] + [
        one for pair in zip(samples[600:640:2], gripper, samples[601:640:2]) for one in pair
    ] + samples[640:]  # fmt: skip
    # The clock starts over.
    return samples + clean_samples(120)


def blocks_of(tmp_path, samples):
    """Return blocks, as read from a bag of these samples."""
    pairs = [(START_NS + index * 5_000_000, sample) for index, sample in enumerate(samples)]
    write_joint_bag(tmp_path / 'messy', '/joint_states', pairs)
    return list(read_joint_blocks(tmp_path / 'messy'))
