"""The page on the node against the code: parameters, counters, and the tests that it names."""

import json
from pathlib import Path
import re

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'node.md').read_text()


def rows_below(heading):
    """Return the cells of the first table below a line."""
    lines = PAGE[PAGE.index(heading) :].splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith('|---'))
    cells = []
    for line in lines[start + 1 :]:
        if not line.startswith('|'):
            break
        cells.append([cell.strip() for cell in line.strip('|').split('|')])
    return cells


def test_the_table_of_parameters_is_that_of_the_code():
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    from seqmem_ros.ros.parameters import PARAMETERS

    expected = [
        [f'`{s.name}`', s.type.name.lower(), f'`{json.dumps(s.default)}`', s.when]
        for s in PARAMETERS
    ]
    assert rows_below('## Parameters') == expected


def test_every_counter_is_explained():
    sources = [*ROOT.glob('seqmem_ros/core/*.py'), *ROOT.glob('seqmem_ros/ros/*.py')]
    text = '\n'.join(path.read_text() for path in sources)
    counters = set(re.findall(r"'((?:drop|value|reset)_[a-z_]+)'", text)) - {'reset_after'}
    counters |= {f'drop_no_{field}' for field in ('position', 'velocity', 'effort')}
    assert len(counters) > 20
    assert sorted(c for c in counters if f'`{c}`' not in PAGE) == []


def test_every_limit_of_a_stream_stands_beside_its_rule():
    from seqmem_ros.core.options import StreamOptions

    rules = ' '.join(cell for row in rows_below('## Rules') for cell in row)
    labels = PAGE[PAGE.index('## Labels') : PAGE.index('## Diagnostics')]
    for name in StreamOptions.__dataclass_fields__:
        assert f'`{name}`' in (labels if 'label' in name else rules), name


def test_every_rule_has_tests_that_exist():
    for row in rows_below('## Rules'):
        names = re.findall(r'`(test_\w+\.py)`', row[-1])
        assert names, row[0]
        for name in names:
            folder = 'ros' if name.startswith('test_node') else 'core'
            assert (ROOT / 'test' / folder / name).is_file(), name


def test_every_diagnostic_value_is_explained():
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    from seqmem_ros.core.filters import Difference
    from seqmem_ros.core.stream import Stream
    from seqmem_ros.ros.diagnostics import Monitor

    _, _, values = Monitor().report(Stream(Difference()).counts)
    for key in values:
        kinds = [f'`{kind}*`' for kind in ('drop_', 'value_', 'reset_') if key.startswith(kind)]
        assert any(word in PAGE for word in [f'`{key}`', *kinds]), key
