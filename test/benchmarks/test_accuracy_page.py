"""The page of scores is what the script makes."""

from pathlib import Path
import re

from accuracy import renewed
import pytest

from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.weights import file_digest

PAGE = Path(__file__).parents[2] / 'docs' / 'accuracy.md'
BLOCKS = {
    *(
        f'{suite} {what}'
        for suite in ('simulated', 'real')
        for what in ('overview', 'bars', 'groups', 'above', 'cells')
    ),
    'settings',
    'hour',
    'stress',
}


def blocks_of_page():
    text = PAGE.read_text()
    pattern = r'<!-- block: (.+?) -->\n```text\n(.*?)```'
    return dict(re.findall(pattern, text, flags=re.DOTALL))


def test_blocks_are_replaced_and_nothing_else():
    page = (
        'a\n<!-- block: x -->\n```text\nold\n\nold\n```\nb\n<!-- block: y -->\n```text\n```\nc\n'
    )
    assert renewed(page, {'x': '1\n2', 'y': '\\3'}) == (
        'a\n<!-- block: x -->\n```text\n1\n2\n```\nb\n<!-- block: y -->\n```text\n\\3\n```\nc\n'
    )


def test_a_page_with_other_markers_is_refused():
    with pytest.raises(ValueError, match=r"expected one marker for each of \['x'\], got \['y'\]"):
        renewed('<!-- block: y -->\n```text\n```\n', {'x': ''})


def test_every_block_of_the_page_is_filled():
    blocks = blocks_of_page()
    assert set(blocks) == BLOCKS
    assert all(text.strip() for text in blocks.values())


@pytest.mark.parametrize('name', ['gru', 'lstm', 'attention'])
def test_the_page_is_of_the_weights_that_are_shipped(name):
    """If not, ./run accuracy makes the page again."""
    assert f'weights {file_digest(SHIPPED[name])}' in blocks_of_page()['settings']
