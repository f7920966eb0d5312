"""The page on memory shows what ``seqmem inspect`` prints of the shipped weights."""

from pathlib import Path
import re

import pytest

DOCS = Path(__file__).parents[2] / 'docs'
NUMBER = re.compile(r'-?\d+(?:\.\d+)?')


@pytest.fixture(scope='module')
def page():
    return (DOCS / 'memory.md').read_text()


def test_every_block_is_printed(page, load_script):
    script = load_script('docs/refresh_memory.py')
    fresh = script.refreshed(page, {name: script.printed(name) for name in script.SHOWN})
    old, new = (NUMBER.sub('#', text).split() for text in (page, fresh))
    assert old == new, 'run python docs/refresh_memory.py and read the sentences again'
    # Versions of JAX and processors round in their own ways.
    for a, b in zip(NUMBER.findall(page), NUMBER.findall(fresh)):
        assert float(b) == pytest.approx(float(a), rel=0.03, abs=0.002), (a, b)


def test_refreshing_replaces_whole_blocks_and_nothing_else(load_script):
    script = load_script('docs/refresh_memory.py')
    outputs = {
        'gru': 'model  gru, digest 1\ntask   v\n\nlayers.0 (GRU) linearised at 2\n 0.5\n',
        'attention': 'model  attention\n\nattention reaches 5\n\nsize of the output 7',
    }
    page = (
        'Text\n\n    seqmem inspect gru\n\n## A\n\n    model  gru, digest 9\n    task   v\n    x\n'
        '\nMore\n\n    layers.0 (GRU) linearised at 8\n     0.4\n\n    attention reaches 9\n\n'
        '    size of the output 3\n\n- item\n  goes on\n'
    )
    assert script.refreshed(page, outputs) == (
        'Text\n\n    seqmem inspect gru\n\n## A\n\n    model  gru, digest 1\n    task   v\n'
        '\nMore\n\n    layers.0 (GRU) linearised at 2\n     0.5\n\n    attention reaches 5\n\n'
        '    size of the output 7\n\n- item\n  goes on\n'
    )
