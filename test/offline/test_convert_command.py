"""
From a file of another program to estimates of the stream that the node runs.

The references step sample by sample, PyTorch with its own state, NumPy with the formulas of its
documentation; neither reads anything from the converted file.
"""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from seqmem_ros.cli.main import main
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.stream import Stream

N_SAMPLES = 100
N_FILLING = 4
STEP_NS = 10_000_000
TRAINED = ('shoulder', 'elbow', 'wrist')
# Not the order of the training data, and with a joint that the network knows nothing of.
PUBLISHED = ('gripper', 'wrist', 'shoulder', 'elbow')
MEAN, SCALE = np.array([0.1, -0.2, 0.3]), np.array([1.5, 0.5, 2.0])


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def lstm_state_dict(n_in, n_hidden, n_out, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {
        'lstm.weight_ih_l0': (4 * n_hidden, n_in), 'lstm.weight_hh_l0': (4 * n_hidden, n_hidden),
        'lstm.bias_ih_l0': (4 * n_hidden,), 'lstm.bias_hh_l0': (4 * n_hidden,),
        'head.weight': (n_out, n_hidden), 'head.bias': (n_out,),
    }  # fmt: skip
    return {n: (0.5 * rng.normal(size=s)).astype(np.float32) for n, s in shapes.items()}


def numpy_steps(p, inputs):
    """LSTM and Linear in double precision, one sample after another; inputs (T, n_in)."""
    p = {name: value.astype(np.float64) for name, value in p.items()}
    h = c = np.zeros(p['lstm.weight_hh_l0'].shape[1])
    outputs = []
    for x in inputs:
        a = p['lstm.weight_ih_l0'] @ x + p['lstm.bias_ih_l0']
        i, f, g, o = np.split(a + p['lstm.weight_hh_l0'] @ h + p['lstm.bias_hh_l0'], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(p['head.weight'] @ h + p['head.bias'])
    return np.array(outputs)


def torch_steps(torch, module, inputs):
    state, outputs = None, []
    with torch.no_grad():
        for x in torch.tensor(inputs, dtype=torch.float32):
            y, state = module.lstm(x[None], state)
            outputs.append(module.head(y)[0].numpy())
    return np.array(outputs)


@pytest.fixture
def torch():
    return pytest.importorskip('torch', reason='PyTorch is not installed')


def torch_module(torch, n_in, n_hidden, n_out):
    torch.manual_seed(0)
    return torch.nn.ModuleDict(
        {'lstm': torch.nn.LSTM(n_in, n_hidden), 'head': torch.nn.Linear(n_hidden, n_out)}
    )


def motion(n_joints):
    t = np.arange(N_SAMPLES)[:, None] * 0.01
    return np.sin(t * np.arange(3, 3 + n_joints) + np.arange(n_joints))


def push_all(path, positions, names, memory='persistent'):
    stream = Stream(load_estimator(weights=path, memory=memory))
    stream.warm_up()
    estimates = [
        stream.push(JointSample((k + 1) * STEP_NS, names, position))
        for k, position in enumerate(positions)
    ]
    assert estimates[:N_FILLING] == [None] * N_FILLING
    assert stream.counts == {
        'received': N_SAMPLES, 'filling': N_FILLING, 'estimated': N_SAMPLES - N_FILLING,
    }  # fmt: skip
    return estimates[N_FILLING:]


def convert_named(source, out):
    arguments = ['convert', str(source), str(out), '--joints', ','.join(TRAINED)]
    arguments += [f'--input-mean={",".join(map(str, MEAN))}']
    arguments += [f'--input-scale={",".join(map(str, SCALE))}']
    assert main([*arguments, '--output-scale', '0.8', '--rate-hz', '100']) == 0


def check_named(path, steps):
    positions = motion(4)
    columns = [PUBLISHED.index(name) for name in TRAINED]
    expected = 0.8 * steps((positions[:, columns] - MEAN) / SCALE)[N_FILLING:]
    estimates = push_all(path, positions, PUBLISHED)
    assert {e.names for e in estimates} == {TRAINED}
    got = np.stack([e.velocity for e in estimates])
    np.testing.assert_allclose(got, expected, atol=5e-6)
    assert np.ptp(got, axis=0).min() > 0.01


SHARED = ['--features', 'lag_velocity,step_s', '--input-scale', '3,3,3,3,0.01']


def check_shared(path, steps):
    """Each joint with a memory of its own; inputs from the definition of the features."""
    positions = motion(2)
    expected = []
    for joint in positions.T:
        rows = []
        for k in range(N_SAMPLES):
            past = [max(k - lag, 0) for lag in (1, 2, 3, 4)]
            took = [max((k - j) * 0.01, 1e-6) for j in past]
            lags = [(joint[k] - joint[j]) / s for j, s in zip(past, took)]
            rows.append([*(v / 3 for v in lags), (0.01 if k else 0.0) / 0.01])
        expected.append(steps(np.array(rows))[N_FILLING:, 0])
    estimates = push_all(path, positions, ('a', 'b'))
    got = np.stack([e.velocity for e in estimates])
    np.testing.assert_allclose(got, np.transpose(expected), atol=2e-5)


def test_named_joints_from_safetensors_against_numpy(tmp_path, capsys):
    p = lstm_state_dict(3, 8, 3)
    save_file(p, tmp_path / 'theirs.safetensors')
    convert_named(tmp_path / 'theirs.safetensors', tmp_path / 'ours.safetensors')
    said = capsys.readouterr().out
    assert 'inputs: position of shoulder, position of elbow, position of wrist' in said
    assert 'goes on from sample to sample (memory: persistent)' in said
    check_named(tmp_path / 'ours.safetensors', lambda x: numpy_steps(p, x))


def test_one_network_for_any_joint_against_numpy(tmp_path):
    p = lstm_state_dict(5, 8, 1)
    save_file(p, tmp_path / 'theirs.safetensors')
    out = tmp_path / 'ours.safetensors'
    assert main(['convert', str(tmp_path / 'theirs.safetensors'), str(out), *SHARED]) == 0
    check_shared(out, lambda x: numpy_steps(p, x))


def test_named_joints_from_pt_against_pytorch(torch, tmp_path):
    module = torch_module(torch, 3, 8, 3)
    torch.save(module.state_dict(), tmp_path / 'theirs.pt')
    convert_named(tmp_path / 'theirs.pt', tmp_path / 'ours.safetensors')
    check_named(tmp_path / 'ours.safetensors', lambda x: torch_steps(torch, module, x))


def test_one_network_for_any_joint_against_pytorch(torch, tmp_path):
    module = torch_module(torch, 5, 8, 1)
    torch.save(module.state_dict(), tmp_path / 'theirs.pt')
    out = tmp_path / 'ours.safetensors'
    assert main(['convert', str(tmp_path / 'theirs.pt'), str(out), *SHARED]) == 0
    check_shared(out, lambda x: torch_steps(torch, module, x))


def test_inputs_that_were_concatenated_feature_by_feature(tmp_path):
    """Three positions, then three differences: joint by joint would give other numbers."""
    p = lstm_state_dict(6, 4, 2)
    save_file(p, tmp_path / 'theirs.safetensors')
    out = tmp_path / 'ours.safetensors'
    description = {
        'task': 'label', 'labels': ['free', 'contact'], 'joints': TRAINED,
        'features': ['position', 'difference'], 'input_mean': [1, 2, 3, 4, 5, 6],
    }  # fmt: skip
    (tmp_path / 'robot.json').write_text(json.dumps(description))
    arguments = ['convert', str(tmp_path / 'theirs.safetensors'), str(out)]
    assert main([*arguments, '--description', str(tmp_path / 'robot.json')]) == 0
    positions = motion(3)
    inputs = np.concatenate([positions, np.diff(positions, axis=0, prepend=positions[:1])], 1)
    e = np.exp(numpy_steps(p, inputs - np.arange(1, 7)))
    expected = (e / e.sum(1, keepdims=True))[N_FILLING:]
    got = np.concatenate([e.scores for e in push_all(out, positions, TRAINED)])
    np.testing.assert_allclose(got, expected, atol=2e-6)


def test_the_way_back_by_the_command_is_exact(tmp_path):
    p = lstm_state_dict(3, 8, 3)
    theirs, ours, back = (tmp_path / f'{n}.safetensors' for n in ('theirs', 'ours', 'back'))
    save_file(p, theirs)
    convert_named(theirs, ours)
    assert main(['convert', str(ours), str(back), '--like', str(theirs)]) == 0
    read = load_file(back)
    assert set(read) == set(p)
    for name, value in p.items():
        np.testing.assert_array_equal(read[name], value, err_msg=name)


def test_bidirectional_is_refused_with_persistent_memory_and_runs_on_windows(tmp_path, capsys):
    p = lstm_state_dict(1, 4, 1)
    p |= {f'{n}_reverse': v * 0.5 for n, v in p.items() if n.startswith('lstm')}
    p['head.weight'] = np.tile(p['head.weight'], 2)
    save_file(p, tmp_path / 'theirs.safetensors')
    out = tmp_path / 'ours.safetensors'
    assert main(['convert', str(tmp_path / 'theirs.safetensors'), str(out)]) == 0
    assert 'runs with memory: window only' in capsys.readouterr().out
    with pytest.raises(
        SeqmemError,
        match=r"cannot go on from sample to sample: layer 0 \(Bidirectional\).*set memory to 'win",
    ):
        Stream(load_estimator(weights=out))
    positions = motion(1)
    got = [e.velocity[0] for e in push_all(out, positions, ('a',), memory='window')]
    # The backward half has seen the newest sample alone.
    half = {n.removesuffix('_reverse'): v for n, v in p.items() if '_reverse' in n}
    heads = p['head.weight'][:, :4], p['head.weight'][:, 4:]
    forward, backward = (
        q | {'head.weight': head, 'head.bias': np.zeros(1)} for q, head in zip((p, half), heads)
    )
    for k, y in enumerate(got):
        expected = numpy_steps(forward, positions[k : k + 5])[-1] + p['head.bias']
        expected += numpy_steps(backward, positions[k + 4 : k + 5])[-1]
        assert y == pytest.approx(expected.item(), abs=2e-6)


def test_mean_over_the_window_gives_labels_with_memory_window(tmp_path):
    p = lstm_state_dict(1, 4, 2)
    save_file(p, tmp_path / 'theirs.safetensors')
    out = tmp_path / 'ours.safetensors'
    arguments = ['convert', str(tmp_path / 'theirs.safetensors'), str(out)]
    arguments += ['--network', 'lstm,mean,head', '--task', 'label', '--labels', 'still,moving']
    assert main(arguments) == 0
    positions = motion(1)
    got = [e.scores[0] for e in push_all(out, positions, ('a',), memory='window')]
    for k, scores in enumerate(got):
        # Mean and linear layer may change places.
        e = np.exp(numpy_steps(p, positions[k : k + 5]).mean(0))
        np.testing.assert_allclose(scores, e / e.sum(), atol=2e-6)


def test_attention_without_a_window_is_refused_with_persistent_memory(tmp_path, capsys):
    rng = np.random.default_rng(0)
    shapes = {'in_proj_weight': (12, 4), 'out_proj.weight': (4, 4)}
    p = {f'att.{n}': rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    p |= {'embed.weight': np.ones((4, 1), np.float32), 'head.weight': np.ones((1, 4), np.float32)}
    save_file(p, tmp_path / 'theirs.safetensors')
    out = tmp_path / 'ours.safetensors'
    arguments = ['convert', str(tmp_path / 'theirs.safetensors'), str(out), '--network']
    assert main([*arguments, 'embed,att:n_heads=2:causal,head']) == 0
    assert 'its attention keeps every sample since the start' in capsys.readouterr().out
    with pytest.raises(SeqmemError, match='its attention has no window and would keep every'):
        Stream(load_estimator(weights=out))
    assert main([*arguments, 'embed,att:n_heads=2:window=3,head']) == 0
    assert len(push_all(out, motion(1), ('a',))) == N_SAMPLES - N_FILLING


def write_h5(path):
    h5py = pytest.importorskip('h5py', reason='h5py is not installed')
    rng = np.random.default_rng(3)
    names = (
        'gru/cell/vars/0',
        'gru/cell/vars/1',
        'gru/cell/vars/2',
        'dense/vars/0',
        'dense/vars/1',
    )
    shapes = ((1, 12), (4, 12), (2, 12), (4, 1), (1,))
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    with h5py.File(path, 'w') as file:
        for name, array in zip(names, arrays):
            file[f'layers/{name}'] = array
    return [array.astype(float) for array in arrays]


def test_keras_weights_through_the_command_against_numpy(tmp_path):
    kernel, recurrent, bias, head, head_bias = write_h5(tmp_path / 'a.weights.h5')
    out = tmp_path / 'ours.safetensors'
    assert main(['convert', str(tmp_path / 'a.weights.h5'), str(out)]) == 0
    positions = motion(1)
    h, expected = np.zeros(4), []
    for x in positions:
        a, u = x @ kernel + bias[0], h @ recurrent + bias[1]
        z, r = sigmoid(a + u)[:4], sigmoid(a + u)[4:8]
        h = z * h + (1 - z) * np.tanh(a[8:] + r * u[8:])
        expected.append(h @ head + head_bias)
    got = [e.velocity for e in push_all(out, positions, ('a',))]
    np.testing.assert_allclose(got, expected[N_FILLING:], atol=5e-6)


# --- --check, the list, errors ------------------------------------------------------------------


def run_theirs(tmp_path, *arguments):
    save_file(lstm_state_dict(3, 8, 3), tmp_path / 'theirs.safetensors')
    source, out = tmp_path / 'theirs.safetensors', tmp_path / 'ours.safetensors'
    return main(['convert', str(source), str(out), '--joints', 'a,b,c', *arguments])


@pytest.mark.parametrize('last_only', [False, True])
def test_check_compares_and_fails(tmp_path, capsys, last_only):
    inputs = motion(3)
    outputs = numpy_steps(lstm_state_dict(3, 8, 3), inputs)
    path = tmp_path / 'check.npz'
    np.savez(path, inputs=inputs, outputs=outputs[-1] if last_only else outputs)
    assert run_theirs(tmp_path, '--check', str(path)) == 0
    n_outputs = 3 if last_only else 300
    assert f'over {n_outputs} outputs' in capsys.readouterr().out
    (tmp_path / 'ours.safetensors').unlink()
    outputs[-1, 0] += 0.01
    np.savez(path, inputs=inputs, outputs=outputs[-1] if last_only else outputs)
    assert run_theirs(tmp_path, '--check', str(path)) == 1
    assert 'differs by up to 0.01: check --network' in capsys.readouterr().err
    assert not (tmp_path / 'ours.safetensors').exists()


def test_without_a_file_to_write_the_content_is_listed(tmp_path, capsys):
    save_file(lstm_state_dict(3, 8, 3), tmp_path / 'theirs.safetensors')
    assert main(['convert', str(tmp_path / 'theirs.safetensors')]) == 0
    said = capsys.readouterr().out
    assert '  lstm  LSTM\n' in said
    assert '      weight_ih_l0  (32, 3)\n' in said
    assert '  head  Linear\n' in said


@pytest.mark.parametrize(
    ('arguments', 'text'),
    [
        (['--joints', 'a,b'], 'the network reads 3 inputs, but 2 joint(s) with the features'),
        (['--task', 'label', '--labels', 'x,y'], 'the network gives 3 outputs, expected 2'),
        (['--task', 'label'], 'labels: expected the names of the classes in order, got none'),
        (['--features', 'colour'], 'features: expected one of position, velocity'),
        (['--input-scale', '0'], 'input_scale: expected numbers above 0, got 0.0'),
        (['--input-scale', 'nan'], 'input_scale: expected finite numbers between commas, got nan'),
        (['--input-mean', '1,2'], 'input_mean: expected 1 or 3 numbers, got 2'),
        (['--rate-hz', '1,2,3'], 'rate_hz: expected one or two numbers, got 3'),
        (['--network', 'lstm'], "the file also holds 'head' (Linear); give each a place"),
        (['--network', 'lstm,head,-tail'], 'expected to leave out modules of the file'),
        (['--network', 'lstm,head,head'], 'expected each module once, got head again'),
        (['--network', 'lstm,swish,head'], 'relu, tanh, gelu, sigmoid, mean, positions'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(tmp_path, capsys, arguments, text):
    assert run_theirs(tmp_path, *arguments) == 1
    said = capsys.readouterr().err
    assert text in said
    assert said.count('\n') == 1
    assert not (tmp_path / 'ours.safetensors').exists()


def test_diverged_weights_and_the_own_file_are_not_written(tmp_path, capsys):
    p = lstm_state_dict(1, 4, 1)
    p['head.bias'][0] = np.nan
    source = tmp_path / 'theirs.safetensors'
    save_file(p, source)
    assert main(['convert', str(source), str(tmp_path / 'ours.safetensors')]) == 1
    assert "Linear 'head' bias: expected finite numbers" in capsys.readouterr().err
    assert main(['convert', str(source), str(source)]) == 1
    assert 'expected another file to write' in capsys.readouterr().err
    assert main(['convert', str(source), str(tmp_path / 'ours.pt')]) == 1
    assert 'expected a file to write that ends in .safetensors' in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ['theirs.safetensors']
