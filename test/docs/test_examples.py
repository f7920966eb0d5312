"""Every example prints what its text says, and what the text says is right."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

EXACT = (
    'adaptive_filters',
    'fading_influence',
    'first_numbers',
    'fixed_gates',
    'forward_and_step',
    'parameter_counts',
)
NUMBER = re.compile(r'-?\d+(?:\.\d+)?(?:e[+-]\d+)?')


def printed_in(text):
    """Cut the lines after ``Prints::`` out of a docstring."""
    lines = text.partition('Prints::\n\n')[2].splitlines()
    return [line[4:].rstrip() for line in lines if line.strip()]


def assert_same(got, expected):
    """Compare words exactly, numbers up to one in the last digit that is shown."""
    assert NUMBER.sub('#', got) == NUMBER.sub('#', expected)
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(expected)):
        mantissa, _, exponent = b.partition('e')
        digits = len(mantissa.partition('.')[2])
        last = 10.0 ** (int(exponent or 0) - digits)
        exact = '.' not in b and not exponent
        assert abs(float(a) - float(b)) <= (0 if exact else 1.001 * last), f'{got!r} {expected!r}'


@pytest.mark.parametrize('name', EXACT)
def test_example_prints_what_its_text_says(name, load_script, capsys):
    example = load_script(f'docs/examples/{name}.py')
    example.main()
    got, expected = capsys.readouterr().out.splitlines(), printed_in(example.__doc__)
    assert len(got) == len(expected) > 0
    for line, other in zip(got, expected):
        assert_same(line.rstrip(), other)


# The numbers in the texts, from elsewhere than the examples.


def test_first_numbers_by_hand(load_script):
    example = load_script('docs/examples/first_numbers.py')
    z = r = 1 / (1 + math.exp(-1))
    h = z * 0.5 + (1 - z) * math.tanh(2 + r * 0.5)
    assert round(h, 4) == 0.6298 == round(example.gru_output(), 4)
    gate = 1 / (1 + math.exp(-0.5))
    c = gate * math.tanh(0.5) + 0.2 * gate
    assert round(gate * math.tanh(c), 4) == 0.2429 == round(example.lstm_output(), 4)
    share = math.exp(1 / math.sqrt(2)) / (math.exp(1 / math.sqrt(2)) + 1)
    mixed = share * 10 + (1 - share) * 20
    assert round(mixed, 4) == 13.3024 == round(example.attention_output(), 4)


def test_influence_is_the_product_of_the_jacobians(load_script):
    example = load_script('docs/examples/fading_influence.py')
    for gain in example.GAINS:
        c, s = math.cos(0.8), math.sin(0.8)
        W = gain * np.array([[c, -s], [s, c]])
        h, J = np.zeros(2), np.eye(2)
        for n in range(1, 21):
            h = np.tanh(W @ h + [0.5, -0.3])
            J = np.diag(1 - h**2) @ W @ J
            if n in example.STEPS:
                expected = np.linalg.norm(J) / math.sqrt(2)
                assert example.influence_after(gain, n) == pytest.approx(expected, abs=1e-5)


def test_fixed_gates_layer_and_formula_agree(load_script):
    example = load_script('docs/examples/fixed_gates.py')
    for gates, end in zip(example.GATES, (-0.5, 0.638)):
        assert example.outputs(*gates)[-1] == pytest.approx(end, abs=5e-4)
        np.testing.assert_allclose(
            example.lstm_outputs(*gates), example.outputs(*gates), atol=1e-6
        )


def test_lms_converges_below_its_limit_and_not_above(load_script):
    example = load_script('docs/examples/adaptive_filters.py')
    R = example.covariance()
    limit = 2 / np.linalg.eigvalsh(R)[-1]
    start = np.linalg.norm(example.TAPS)
    for share in (0.1, 0.5, 0.9, 0.999):
        assert example.mean_error_after(share * limit, 5000) < 0.1 * start
    for share, n_steps in ((1.001, 20_000), (1.1, 200)):
        assert example.mean_error_after(share * limit, n_steps) > 10 * start
    # The covariance itself, from the noise that the example makes.
    u = example.coloured_noise(200_000)
    measured = [np.mean(u[k:] * u[: len(u) - k]) for k in range(4)]
    np.testing.assert_allclose(measured, R[0], rtol=0.05)


def test_adaptive_one_pole_gradient_against_differences(load_script):
    example = load_script('docs/examples/adaptive_filters.py')
    u = np.random.default_rng(5).normal(size=100)
    d = example.one_pole_output(0.8, 1.0, u)

    def loss(a, b):
        return np.mean((d - example.one_pole_output(a, b, u)) ** 2)

    expected = [
        (loss(0.6 + 1e-6, 0.3) - loss(0.6 - 1e-6, 0.3)) / 2e-6,
        (loss(0.6, 0.3 + 1e-6) - loss(0.6, 0.3 - 1e-6)) / 2e-6,
    ]
    np.testing.assert_allclose(example.gradient_by_recursion(0.6, 0.3, u, d), expected, rtol=1e-6)
    np.testing.assert_allclose(example.gradient_by_autodiff(0.6, 0.3, u, d), expected, rtol=1e-4)


def test_reach_counts_what_matters(load_script):
    example = load_script('docs/examples/forward_and_step.py')
    seq = jnp.array(np.random.default_rng(0).normal(size=(30, example.WIDTH)), jnp.float32)
    window = example.LAYERS['attention, window 5']
    assert example.reach(window, seq) == 5
    # Not by the gradient, but by changing samples.
    last = jax.jit(lambda s: window.forward(s)[-1])
    changed = [
        age for age in range(8) if not np.array_equal(last(seq.at[29 - age].add(1)), last(seq))
    ]
    assert changed == [0, 1, 2, 3, 4]
    assert jax.tree.leaves(window.init_state())[0].shape == (5, example.WIDTH)
