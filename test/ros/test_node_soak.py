"""A short soak: every message accounted for, and no growth; benchmarks/soak.py does a long one."""

from pathlib import Path
import sys

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

sys.path.insert(0, str(Path(__file__).parents[2] / 'benchmarks'))

from soak import ALLOWED_GROWTH_BYTES
from soak import soak


@pytest.mark.skipif(not Path('/proc').is_dir(), reason='needs /proc to see the memory')
def test_no_message_is_lost_and_nothing_grows(ros_domain):
    result = soak(3000, 'difference', ros_domain, warm_up=1500)
    assert result.sent == result.counts['received'] == 3000
    assert result.unaccounted == 0
    assert result.published == result.counts['published'] > 2900
    # Each of the six ways to spoil a message came ten times; the last leaves it good.
    counts = result.counts
    assert counts['value_non_finite'] == 10 + 7 * 10
    assert counts['drop_all_rejected'] == 10
    assert counts['drop_length_mismatch'] == 10
    assert counts['drop_late'] + counts['drop_duplicate_stamp'] == 20
    assert result.growth_bytes <= ALLOWED_GROWTH_BYTES
