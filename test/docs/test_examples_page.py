"""The page of worked examples: all of them, with what they print."""

import ast
from pathlib import Path
import re

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / 'docs'
PAGE = (DOCS / 'examples.md').read_text()
NAMES = sorted(path.stem for path in (DOCS / 'examples').glob('*.py'))


def output_on_page(path):
    """Find the block below the link to a script."""
    section = PAGE.partition(f'[`{path}`]')[2].partition('\n## ')[0]
    return section.partition('```text\n')[2].partition('\n```')[0].splitlines()


@pytest.mark.parametrize('name', NAMES)
def test_the_output_is_that_of_the_script(name):
    # What the scripts say in their texts is held to what they print elsewhere.
    doc = ast.get_docstring(ast.parse((DOCS / f'examples/{name}.py').read_text()))
    said = doc.partition('Prints::\n\n')[2].splitlines()
    assert output_on_page(f'docs/examples/{name}.py') == [line[4:] for line in said]
    assert said


def test_every_script_has_its_place():
    assert sorted(re.findall(r'\]\(examples/(\w+)\.py\)', PAGE)) == NAMES
    assert len(NAMES) >= 8


def test_the_recall_table_is_one_that_the_script_prints(load_script, monkeypatch, capsys):
    benchmark = load_script('benchmarks/recall.py')
    on_page = output_on_page('benchmarks/recall.py')
    rows = {line[:10].strip(): np.array(line[10:].split(), float) for line in on_page[2:-1]}

    def shares(name, length, n_seeds, n_steps):
        assert (n_seeds, n_steps) == (3, 1500)
        column = benchmark.LENGTHS.index(length)
        return rows[name][3 * column : 3 * column + 3] / 100

    monkeypatch.setattr(benchmark, 'recall_shares', shares)
    benchmark.main([])
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:-1] == on_page[:-1]
    assert all(((0 <= row) & (row <= 100)).all() for row in rows.values())
    told = captured.err.splitlines()
    assert len(told) == 12
    assert re.match(r'plain RNN, T = 5:.*\(1 of 12 after \d+ s, about \d+ s left\)$', told[0])
    assert re.search(r'\(12 of 12 after \d+ s, about 0 s left\)$', told[-1])
