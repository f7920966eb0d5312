"""Tasks that need memory, learned small: who solves them, and who cannot."""

import re

import jax
import numpy as np

NUMBERS = re.compile(r'\d+(?:\.\d+)?')


def test_delayed_recall_ends_where_the_window_ends(load_script, capsys):
    example = load_script('docs/examples/delayed_recall.py')
    example.main()
    printed = capsys.readouterr().out.splitlines()
    said = [line.strip() for line in example.__doc__.partition('Prints::')[2].split('\n')[2:-1]]
    assert [NUMBERS.sub('#', x).split() for x in printed] == [
        NUMBERS.sub('#', x).split() for x in said
    ]
    lines = printed[2:]
    shares = {line[:19].strip(): [float(n) for n in NUMBERS.findall(line[19:])] for line in lines}
    at_4, at_5 = shares.pop('attention, window 5')
    assert at_4 >= 99
    assert 45 <= at_5 <= 55
    assert set(shares) == {'GRU', 'LSTM'}
    assert all(share >= 99 for both in shares.values() for share in both)


def test_delayed_bits_are_the_earlier_ones(load_script):
    example = load_script('docs/examples/delayed_recall.py')
    inputs, delayed, known = example.draw(jax.random.key(0), 3, 5)
    bits = np.asarray(inputs).argmax(-1)
    np.testing.assert_array_equal(delayed[:, 5:], bits[:, :-5])
    assert not known[:, :5].any()
    assert known[:, 5:].all()


def test_sequences_are_written_backwards(load_script, capsys):
    example = load_script('docs/examples/reverse_sequences.py')
    example.main()
    first, *written = capsys.readouterr().out.splitlines()
    assert first == 'right in % of 300 sequences never seen: at least 95'
    assert written == ['3 1 4 2 -> 2 4 1 3 end', '5 0 -> 0 5 end', '4 4 2 -> 2 4 4 end']


def test_recall_of_the_first_symbol(load_script, capsys):
    benchmark = load_script('benchmarks/recall.py')
    inputs, first = benchmark.draw(jax.random.key(0), 4, 6)
    assert inputs.shape == (4, 6, 8)
    np.testing.assert_array_equal(np.asarray(inputs)[:, 0].argmax(-1), first)
    benchmark.main(['--lengths', '5', '--steps', '150', '--seeds', '2', '--cells', 'GRU', 'LSTM'])
    lines = capsys.readouterr().out.splitlines()
    assert 'chance: 12.5' in lines[0]
    for line, name in zip(lines[2:4], ('GRU', 'LSTM')):
        assert line.startswith(name)
        shares = [float(n) for n in NUMBERS.findall(line)]
        assert len(shares) == 2
        assert min(shares) >= 95
