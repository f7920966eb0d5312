"""Every layer and network says its equation, where that is from, and the shapes."""

import inspect
import re

import pytest

from seqmem_ros import nn

# Containers, bookkeeping and look-ups: nothing of a paper is computed there.
WITHOUT_FORMULA = {
    'Module', 'Param', 'Sequential', 'WindowCache', 'forward_padded', 'forward_sequences',
    'get_initializer', 'pad_sequences', 'unpad', 'unroll_padded', 'zeros',
}  # fmt: skip
WITH_FORMULA = sorted(set(nn.__all__) - WITHOUT_FORMULA)

EQUATION = re.compile(r'``[^`]* (?:=|~) [^`]*``|^    .* = ', re.MULTILINE)
TITLE = re.compile(r'\*[^*]+\*')
YEAR = re.compile(r'\b(?:19[5-9]|20[0-2])\d\b|arXiv:\d{4}\.\d{5}')
PLACE = re.compile(r'\b(?:Eqs?\.|Fig\.|p\.|sections?) (?:"|[IVX]+\.|\d)')
SHAPE = re.compile(r'\((?:\.\.\.|[A-Za-z_]\w*),[^()]*\)|any shape|same shape')


def summary(doc):
    """Cut the fields off."""
    return re.split(r'\n:(?=\w)', doc)[0]


def field(doc, name):
    """Give what a docstring says of an argument, or of what comes back."""
    text = re.search(rf'^:{name}:(.*?)(?=^:|\Z)', doc, re.MULTILINE | re.DOTALL)
    assert text, f'no :{name}:'
    return ' '.join(text[1].split())


def is_layer(name):
    thing = getattr(nn, name)
    return inspect.isclass(thing) and issubclass(thing, nn.Module)


@pytest.mark.parametrize('name', WITH_FORMULA)
def test_the_equation_is_there(name):
    assert EQUATION.search(summary(inspect.getdoc(getattr(nn, name))))


@pytest.mark.parametrize('name', WITH_FORMULA)
def test_the_source_is_named_down_to_the_place_in_it(name):
    text = ' '.join(summary(inspect.getdoc(getattr(nn, name))).split())
    for pattern in (TITLE, YEAR, PLACE):
        assert pattern.search(text), pattern.pattern


@pytest.mark.parametrize('name', [name for name in WITH_FORMULA if is_layer(name)])
def test_a_layer_says_the_shapes_of_what_goes_through_and_of_its_weights(name):
    layer = getattr(nn, name)
    doc = inspect.getdoc(layer.forward)
    assert SHAPE.search(field(doc, 'param seq')), 'input of forward'
    assert SHAPE.search(field(doc, 'returns')), 'output of forward'
    doc = inspect.getdoc(layer.step)
    assert SHAPE.search(field(doc, 'param x')), 'input of step'
    assert SHAPE.search(field(doc, 'returns')), 'output of step'
    if re.search(r'\bParam\(|_add_matrix\(', inspect.getsource(layer)):
        assert re.search(r'\bshape \(', layer.__doc__), 'weights'


@pytest.mark.parametrize('name', [name for name in WITH_FORMULA if not is_layer(name)])
def test_a_function_says_the_shape_of_what_comes_back(name):
    doc = inspect.getdoc(getattr(nn, name))
    given = [field(doc, f'param {p}') for p in inspect.signature(getattr(nn, name)).parameters]
    back = field(doc, 'returns')
    assert SHAPE.search(back) or ('of that shape' in back and SHAPE.search(' '.join(given)))


def test_the_list_of_exceptions_is_short_and_of_this_package():
    assert WITHOUT_FORMULA < set(nn.__all__)
    assert len(WITHOUT_FORMULA) <= 11
