"""Pages on layers and memory: examples run, tables rebuilt, stated numbers worked out."""

import doctest
import hashlib
import math
from pathlib import Path
import re

import jax
import numpy as np
import pytest

import seqmem_ros
from seqmem_ros import nn
from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.memory_counts import count_parameters
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline.convert import keras_layout
from seqmem_ros.offline.convert import torch_layout

DOCS = Path(seqmem_ros.__file__).parents[1] / 'docs'
LAYERS = DOCS / 'layers.md'
MEMORY = DOCS / 'memory.md'


def table(page, heading):
    """Find the rows of the table below a heading that have an example to build."""
    section = page.read_text().partition(f'\n## {heading}\n')[2].partition('\n## ')[0]
    lines = [line for line in section.splitlines() if line.startswith('| `')]
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]


def built(cell):
    return eval(cell.strip('`'), {**vars(nn), 'key': jax.random.key(0)})


def test_the_examples_give_what_they_say():
    failures, tried = doctest.testfile(str(LAYERS), module_relative=False)
    assert failures == 0 and tried > 30


@pytest.mark.parametrize('row', table(LAYERS, 'Parameters of each'), ids=lambda row: row[0])
def test_parameters_of_a_layer(row):
    example, listed, arrays, numbers = row
    found = {name: np.shape(param.value) for name, param in built(example).named_params().items()}
    stated = re.findall(r'`([\w.]+)` (\([\d, ]+\))', listed)
    assert [(name, eval(shape)) for name, shape in stated] == list(found.items())
    assert int(arrays) == len(found)
    assert int(numbers) == sum(math.prod(shape) for shape in found.values())


@pytest.mark.parametrize('row', table(LAYERS, 'Networks'), ids=lambda row: row[0])
def test_layers_and_counts_of_a_network(row):
    example, listed, arrays, numbers = row
    network = built(example)
    assert listed == ', '.join(type(layer).__name__ for layer in network.layers)
    assert int(arrays) == len(network.params())
    assert int(numbers) == sum(np.size(param.value) for param in network.params())


def test_every_layer_of_the_package_is_on_the_page():
    page = LAYERS.read_text()
    layers = [
        name
        for name in nn.__all__
        if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)
    ]
    assert len(layers) > 10
    assert [name for name in layers if name != 'Module' and name not in page] == []


@pytest.mark.parametrize('example', ['RNN(4, 6, key)', 'GRU(4, 6, key)', 'LSTM(4, 6, key)'])
def test_formulas_of_counts_are_those_of_the_counter(example):
    (count,) = count_parameters(built(example))
    assert f'Parameters: `{count.formula}`' in LAYERS.read_text()


@pytest.mark.parametrize('kind', ['GRU', 'LSTM'])
def test_orders_of_gates_are_those_of_the_conversion(kind):
    (line,) = [x for x in LAYERS.read_text().splitlines() if x.startswith(f'| {kind} | `')]
    _, _, torch_cell, keras_cell = line.strip('|').split('|')
    for cell, layout in ((torch_cell, torch_layout), (keras_cell, keras_layout)):
        letters = re.search(r'`([a-z ]+)`', cell)[1].split()
        assert letters == list(layout.GATES[kind])
        # Whichever has another name here is explained.
        (other,) = [ours for letter, ours in layout.GATES[kind].items() if letter != ours]
        assert other == {'GRU': '', 'LSTM': 'z'}[kind]


def test_the_card_is_that_of_the_shipped_file():
    page = MEMORY.read_text()
    digest = hashlib.sha256(SHIPPED['gru'].read_bytes()).hexdigest()[:12]
    assert f'digest {digest}' in page, 'other weights are shipped: show their `seqmem inspect gru`'
    scores = load_model(SHIPPED['gru']).spec.card['scores']
    assert f'model {scores["model"]}' in ' '.join(page.split())


def test_numbers_of_the_memory_page():
    page = ' '.join(MEMORY.read_text().split())
    horizons = [-1 / math.log(pole) for pole in (0.9, 0.99, 0.999)]
    assert '{:.2f} for 0.9, {:.1f} for 0.99, {:.1f} for 0.999'.format(*horizons) in page
    pole = complex(0.9, 0.3)
    turn = 2 * math.pi / math.atan2(0.3, 0.9)
    horizon = -1 / math.log(abs(pole))
    assert f'size {abs(pole):.3f}, a horizon of {horizon:.2f} samples' in page
    assert f'turns once in {turn:.2f}' in page
    # 4 B T (5 H + outputs), B = 32, T = 512, H = 32, and 10 outputs.
    assert f'by formula {4 * 32 * 512 * (5 * 32 + 10) / 1e6:.1f} MB' in page
    assert f'weights {4 * (3 * (32 * (32 + 23) + 32) + 330) / 1e3:.1f} kB' in page


def test_pictures_of_the_memory_page_are_there():
    pictures = re.findall(r'\]\((images/[^)]+)\)', MEMORY.read_text())
    assert len(pictures) == 2
    assert all((DOCS / picture).read_bytes().startswith(b'\x89PNG') for picture in pictures)
