"""
Keras layouts: against their formulas in NumPy, and against Keras where it is installed.

Files are written here with h5py as Keras 3 writes them: groups ``layers/<class>/.../vars/<n>``.
"""

import io
import json
import zipfile

import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.convert import keras_layout
from seqmem_ros.offline.convert.keras_file import read_keras
from seqmem_ros.offline.convert.pieces import network_of
from seqmem_ros.offline.convert.plan import carry_out
from seqmem_ros.offline.convert.plan import default_plan
from seqmem_ros.offline.convert.plan import Format
from seqmem_ros.offline.convert.plan import parse_plan

h5py = pytest.importorskip('h5py', reason='h5py is not installed')

KERAS = Format(keras_layout.CONVERTERS, keras_layout.OPTIONS)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def convert(path, n_in, n_out, plan=None):
    modules, configured = read_keras(path)
    steps, left_out = configured, []
    if plan is not None:
        steps, left_out = parse_plan(plan)
    converted = carry_out(steps or default_plan(modules), left_out, modules, KERAS)
    return network_of(converted.pieces, n_in, n_out)[1], converted


def weights(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) * 0.6 for shape in shapes]


def fill(file, layers):
    """Write ``{group: arrays}`` below ``layers``."""
    file.require_group('layers')
    for group, arrays in layers.items():
        for index, array in enumerate(arrays):
            file[f'layers/{group}/vars/{index}'] = array
    file.require_group('optimizer/vars')['0'] = np.int64(7)
    file.require_group('vars')


def write_h5(path, layers):
    with h5py.File(path, 'w') as file:
        fill(file, layers)
    return path


def write_keras(path, configs, layers, class_name='Sequential'):
    content = io.BytesIO()
    with h5py.File(content, 'w') as file:
        fill(file, layers)
    config = {'class_name': class_name, 'config': {'name': 'net', 'layers': configs}}
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('config.json', json.dumps(config))
        archive.writestr('model.weights.h5', content.getvalue())
    return path


def layer(class_name, name, **settings):
    return {'class_name': class_name, 'config': {'name': name, **settings}}


def keras_gru(w, xs, reset_after):
    kernel, recurrent, *bias = (a.astype(float) for a in w)
    n = len(recurrent)
    rows = np.atleast_2d(bias[0]) if bias else np.zeros((2, 3 * n))
    h, outputs = np.zeros(n), []
    for x in xs:
        a = x @ kernel + rows[0]
        u = h @ recurrent + (rows[1] if reset_after else 0)
        z, r = sigmoid(a + u)[:n], sigmoid(a + u)[n : 2 * n]
        inner = r * u[2 * n :] if reset_after else (r * h) @ recurrent[:, 2 * n :]
        h = z * h + (1 - z) * np.tanh(a[2 * n :] + inner)
        outputs.append(h)
    return np.array(outputs)


def keras_lstm(w, xs):
    kernel, recurrent, bias = (a.astype(float) for a in w)
    n = len(recurrent)
    h, c, outputs = np.zeros(n), np.zeros(n), []
    for x in xs:
        i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs)


def keras_rnn(w, xs, activation=np.tanh):
    kernel, recurrent, bias = (a.astype(float) for a in w)
    h, outputs = np.zeros(len(recurrent)), []
    for x in xs:
        h = activation(x @ kernel + h @ recurrent + bias)
        outputs.append(h)
    return np.array(outputs)


XS = np.random.default_rng(1).normal(size=(6, 3))
GRU_AFTER = ((3, 12), (4, 12), (2, 12))
GRU_BEFORE = ((3, 12), (4, 12), (12,))
LSTM = ((3, 16), (4, 16), (16,))
RNN = ((3, 4), (4, 4), (4,))


@pytest.mark.parametrize(
    ('group', 'shapes', 'run'),
    [
        ('gru', GRU_AFTER, lambda w, xs: keras_gru(w, xs, True)),
        ('gru', GRU_BEFORE, lambda w, xs: keras_gru(w, xs, False)),
        ('lstm', LSTM, keras_lstm),
        ('simple_rnn', RNN, keras_rnn),
    ],
)
def test_recurrent_layer_and_dense_alone(tmp_path, group, shapes, run):
    cell, (kernel, bias) = weights(2, *shapes), weights(3, (4, 2), (2,))
    path = write_h5(tmp_path / 'a.weights.h5', {f'{group}/cell': cell, 'dense': [kernel, bias]})
    network, converted = convert(path, 3, 2)
    assert converted.origins == [group, 'dense']
    np.testing.assert_allclose(network.forward(XS), run(cell, XS) @ kernel + bias, atol=2e-6)


def test_gru_without_biases_is_reset_after_unless_told(tmp_path):
    cell = weights(2, (3, 12), (4, 12))
    path = write_h5(tmp_path / 'a.weights.h5', {'gru/cell': cell})
    for plan, reset_after in ((None, True), ('gru:reset_after=0', False)):
        network, _ = convert(path, 3, 4, plan)
        np.testing.assert_allclose(
            network.forward(XS), keras_gru(cell, XS, reset_after), atol=2e-6
        )


def test_order_and_activations_come_from_the_configuration(tmp_path):
    first, second = weights(2, (5, 12), (4, 12), (12,)), weights(3, (8, 2), (2, 2), (2,))
    dense, out, norm = weights(4, (3, 5), (5,)), weights(5, (2, 2), (2,)), weights(6, (4,), (4,))
    backwards = weights(7, (5, 12), (4, 12), (12,))
    configs = [
        layer('InputLayer', 'in'),
        layer('TimeDistributed', 'each', layer=layer('Dense', 'embed', activation='relu')),
        layer('Dropout', 'drop', rate=0.1),
        layer(
            'Bidirectional',
            'both',
            merge_mode='concat',
            layer=layer('GRU', 'g', reset_after=False, activation='tanh'),
        ),
        layer('SimpleRNN', 'last', activation='relu', go_backwards=False),
        layer('LayerNormalization', 'norm', epsilon=0.01, axis=[-1]),
        layer('Activation', 'bend', activation='tanh'),
        layer('Dense', 'out', activation='linear'),
    ]
    layers = {
        'time_distributed/layer': dense,
        'bidirectional/forward_layer/cell': first,
        'bidirectional/backward_layer/cell': backwards,
        'simple_rnn/cell': second,
        'layer_normalization': [norm[0][:2], norm[1][:2]],
        'dense': out,
    }
    network, converted = convert(write_keras(tmp_path / 'a.keras', configs, layers), 3, 2)
    x = np.maximum(XS @ dense[0] + dense[1], 0)
    x = np.concatenate(
        [keras_gru(first, x, False), keras_gru(backwards, x[::-1], False)[::-1]], axis=1
    )
    x = keras_rnn(second, x, lambda a: np.maximum(a, 0))
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 0.01)
    x = np.tanh(x * norm[0][:2] + norm[1][:2]) @ out[0] + out[1]
    np.testing.assert_allclose(network.forward(XS), x, atol=1e-5)
    assert converted.origins == ['each', 'both', 'last', 'norm', None, 'out']


def test_layers_of_one_class_are_counted_in_the_order_of_the_model(tmp_path):
    arrays = [weights(n, (3, 3), (3,)) for n in range(3)]
    configs = [layer('Dense', name, activation='linear') for name in ('b', 'c', 'a')]
    layers = dict(zip(('dense', 'dense_1', 'dense_2'), arrays))
    network, _ = convert(write_keras(tmp_path / 'a.keras', configs, layers), 3, 3)
    expected = XS
    for kernel, bias in arrays:
        expected = expected @ kernel + bias
    np.testing.assert_allclose(network.forward(XS), expected, atol=1e-5)


def test_softmax_at_the_end_is_noted(tmp_path):
    path = write_keras(
        tmp_path / 'a.keras',
        [layer('Dense', 'out', activation='softmax')],
        {'dense': weights(1, (3, 2), (2,))},
    )
    assert convert(path, 3, 2)[1].softmax


# --- errors -------------------------------------------------------------------------------------


def test_missing_variables_are_listed(tmp_path):
    path = write_h5(tmp_path / 'a.weights.h5', {'lstm/cell': weights(2, (3, 16))})
    with pytest.raises(
        SeqmemError,
        match=r"LSTM 'lstm': expected the tensors kernel, recurrent_kernel \(and all or none of "
        r'bias\), found kernel',
    ):
        convert(path, 3, 4)


def test_unknown_layers_are_listed_with_what_they_hold(tmp_path):
    path = write_h5(tmp_path / 'a.weights.h5', {'conv1d': weights(2, (3, 3, 4), (4,))})
    with pytest.raises(
        SeqmemError,
        match=r"'conv1d': expected a module out of SimpleRNN.*found tensors 0 \(3, 3, 4",
    ):
        convert(path, 3, 4, 'conv1d')


@pytest.mark.parametrize(
    ('settings', 'text'),
    [
        ({'go_backwards': True}, "GRU 'g': expected go_backwards=False, found True"),
        ({'recurrent_activation': 'hard_sigmoid'}, 'expected recurrent_activation=sigmoid, found'),
        ({'activation': 'relu'}, "GRU 'g': expected activation=tanh, found relu"),
    ],
)
def test_settings_without_counterpart_are_refused(tmp_path, settings, text):
    configs = [layer('GRU', 'g', **{'reset_after': True, 'activation': 'tanh', **settings})]
    path = write_keras(tmp_path / 'a.keras', configs, {'gru/cell': weights(2, *GRU_AFTER)})
    with pytest.raises(SeqmemError, match=text):
        convert(path, 3, 4)
    both = [layer('Bidirectional', 'both', merge_mode='concat', layer=configs[0])]
    path = write_keras(tmp_path / 'b.keras', both, {})
    with pytest.raises(SeqmemError, match=text.partition(': ')[2] or text):
        convert(path, 3, 4)


def test_backward_half_that_ends_at_the_first_sample_is_refused(tmp_path):
    inner = layer('GRU', 'g', activation='tanh', reset_after=True, return_sequences=False)
    configs = [layer('Bidirectional', 'both', merge_mode='concat', layer=inner)]
    path = write_keras(tmp_path / 'a.keras', configs, {})
    with pytest.raises(SeqmemError, match="'both': expected return_sequences=True, found False"):
        convert(path, 3, 4)


def test_model_without_weights_is_refused(tmp_path):
    path = write_keras(tmp_path / 'a.keras', [layer('InputLayer', 'in')], {})
    with pytest.raises(SeqmemError, match=r'expected one recurrent .* linear module, found none'):
        convert(path, 3, 4)


def test_layers_without_counterpart_are_refused(tmp_path):
    path = write_keras(tmp_path / 'a.keras', [layer('GlobalMaxPooling1D', 'pool')], {})
    with pytest.raises(SeqmemError, match="GlobalMaxPooling1D 'pool': expected layers out of"):
        convert(path, 3, 4)
    path = write_keras(
        tmp_path / 'b.keras',
        [layer('Dense', 'd', activation='elu')],
        {'dense': weights(1, (3, 4))},
    )
    with pytest.raises(SeqmemError, match="Dense 'd': expected an activation out of linear, relu"):
        convert(path, 3, 4)


def test_branches_are_refused(tmp_path):
    def history(name):
        return [{'args': [{'config': {'keras_history': [name, 0, 0]}}]}]

    configs = [
        {**layer('InputLayer', 'in'), 'inbound_nodes': []},
        {**layer('Dense', 'a', activation='linear'), 'inbound_nodes': history('in')},
        {**layer('Dense', 'b', activation='linear'), 'inbound_nodes': history('in')},
    ]
    path = write_keras(tmp_path / 'a.keras', configs, {}, 'Functional')
    with pytest.raises(
        SeqmemError, match="expected one layer after another, but 'b' reads in and follows 'a'"
    ):
        convert(path, 3, 4)


def test_other_files_say_what_to_do(tmp_path):
    with h5py.File(tmp_path / 'old.h5', 'w') as file:
        file.create_group('model_weights')
    with pytest.raises(
        SeqmemError, match=r"expected a group 'layers', found model_weights; older"
    ):
        read_keras(tmp_path / 'old.h5')
    (tmp_path / 'a.keras').write_bytes(b'nothing')
    with pytest.raises(
        SeqmemError, match=r'a.keras: expected a .keras or .weights.h5 file of Ker'
    ):
        read_keras(tmp_path / 'a.keras')
    path = write_keras(tmp_path / 'b.keras', [], {}, 'MyModel')
    with pytest.raises(SeqmemError, match='expected a Sequential or Functional model, found MyMo'):
        read_keras(path)


def test_without_h5py_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__('sys').modules, 'h5py', None)
    with pytest.raises(SeqmemError, match='files of Keras need h5py, which is not installed here'):
        read_keras(tmp_path / 'a.keras')


# --- Keras itself -------------------------------------------------------------------------------


@pytest.fixture
def keras(monkeypatch):
    monkeypatch.setenv('KERAS_BACKEND', 'jax')
    return pytest.importorskip('keras', reason='Keras is not installed')


def randomised(model):
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=w.shape) * 0.5 for w in model.get_weights()])
    return model


def test_sequential_model_of_keras(keras, tmp_path):
    of = keras.layers
    model = randomised(
        keras.Sequential(
            [
                keras.Input((None, 3)),
                of.TimeDistributed(of.Dense(5, activation='gelu')),
                of.LSTM(5, return_sequences=True, dropout=0.1, name='first'),
                of.GRU(4, return_sequences=True),
                of.Dropout(0.2),
                of.GRU(6, reset_after=False, return_sequences=True),
                of.SimpleRNN(3, activation='relu', return_sequences=True),
                of.Bidirectional(of.LSTM(3, return_sequences=True)),
                of.LayerNormalization(),
                of.ReLU(),
                of.Dense(4, activation='tanh'),
                of.Dense(2),
            ]
        )
    )
    model.save(tmp_path / 'a.keras')
    network, converted = convert(tmp_path / 'a.keras', 3, 2)
    expected = np.asarray(model(XS[None].astype(np.float32)))[0]
    np.testing.assert_allclose(network.forward(XS), expected, atol=1e-5)
    assert converted.origins[1] == 'first'


def test_functional_model_and_weights_alone_of_keras(keras, tmp_path):
    inputs = keras.Input((None, 3))
    hidden = keras.layers.GRU(4, return_sequences=True, use_bias=False, name='memory')(inputs)
    model = randomised(keras.Model(inputs, keras.layers.Dense(2, name='head')(hidden)))
    model.compile('adam', 'mse')
    model.fit(XS[None], np.zeros((1, 6, 2)), verbose=0)
    expected = np.asarray(model(XS[None].astype(np.float32)))[0]
    model.save(tmp_path / 'a.keras')
    model.save_weights(tmp_path / 'a.weights.h5')
    for name in ('a.keras', 'a.weights.h5'):
        network, converted = convert(tmp_path / name, 3, 2)
        np.testing.assert_allclose(network.forward(XS), expected, atol=1e-5)
        assert converted.origins == ['memory', 'head']
