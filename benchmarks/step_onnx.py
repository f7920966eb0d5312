"""The networks of the step benchmark as ONNX models, run by ONNX Runtime in one thread."""

import numpy as np
import onnx
from onnx import helper
from onnx import numpy_helper
import onnxruntime
from step_peers import N_HEADS
from step_peers import Step
from step_peers import Weights
from step_peers import WINDOW

OPSET = 17
IR_VERSION = 9
# Order of the gates that ONNX wants, as places in PyTorch's order.
ONNX_ORDER = {'gru': (1, 0, 2), 'lstm': (0, 3, 1, 2)}


def make_onnx(cell: str, weights: Weights, n_joints: int) -> Step:
    """Step by ``InferenceSession.run``, the state handed back to it."""
    make = _attention if cell == 'attention' else _recurrent
    nodes, constants, states = make(cell, weights, n_joints)
    n_in = weights['in'].shape[1]
    graph = helper.make_graph(
        nodes,
        cell,
        [_tensor('x', (n_joints, n_in)), *(_tensor(k, v.shape) for k, v in states.items())],
        [_tensor('y', (n_joints, 1)), *(_tensor(f'{k}_new', v.shape) for k, v in states.items())],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid('', OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=['CPUExecutionProvider']
    )
    feed, names = dict(states), list(states)

    def step(x: np.ndarray) -> np.ndarray:
        feed['x'] = x
        y, *new = session.run(None, feed)
        for name, value in zip(names, new):
            feed[name] = value
        return y[:, 0]

    return step


def _recurrent(cell: str, w: Weights, n_joints: int) -> tuple:
    n = w['hidden'].shape[1]
    order = ONNX_ORDER[cell]

    def in_order(matrix: np.ndarray) -> np.ndarray:
        gates = np.split(matrix, len(order))
        return np.concatenate([gates[place] for place in order])

    bias = in_order(w['b_in'])
    constants = {
        'W': in_order(w['in'])[None],
        'R': in_order(w['hidden'])[None],
        'B': np.concatenate([bias, np.zeros_like(bias)])[None],
        'V': np.ascontiguousarray(w['out'].T),
        'v': w['b_out'],
        'first': np.array([0]),
    }
    zero = np.zeros((1, n_joints, n), np.float32)
    states = {'h': zero} if cell == 'gru' else {'h': zero, 'c': zero}
    options = {'linear_before_reset': 1} if cell == 'gru' else {}
    new = [f'{name}_new' for name in states]
    nodes = [
        helper.make_node('Unsqueeze', ['x', 'first'], ['seq']),
        helper.make_node(
            cell.upper(), ['seq', 'W', 'R', 'B', '', *states], ['', *new], hidden_size=n, **options
        ),
        helper.make_node('Squeeze', ['h_new', 'first'], ['last']),
        helper.make_node('MatMul', ['last', 'V'], ['product']),
        helper.make_node('Add', ['product', 'v'], ['y']),
    ]
    return nodes, constants, states


def _attention(cell: str, w: Weights, n_joints: int) -> tuple:
    d = len(w['in'])
    d_head = d // N_HEADS
    transposed = {name: np.ascontiguousarray(w[name].T) for name in ('in', 'o', 'out')}
    constants = {
        **transposed,
        'qkv': np.concatenate([w[letter] for letter in 'qkv']).T.copy(),
        'b_in': w['b_in'],
        'b_out': w['b_out'],
        'scale': np.float32(1 / np.sqrt(d_head)),
        'one': np.array([1]),
        'end': np.array([WINDOW]),
        'time': np.array([1]),
        'none': np.zeros((1, 1), np.float32),
        'q_heads': np.array([n_joints, 1, N_HEADS, d_head]),
        'heads': np.array([n_joints, WINDOW, N_HEADS, d_head]),
        'flat': np.array([n_joints, d]),
    }
    zero = np.zeros((n_joints, WINDOW, d), np.float32)
    states = {'k': zero, 'v': zero, 'm': np.full((1, WINDOW), -1e30, np.float32)}
    nodes = [
        _node('MatMul', 'x in', 'a'),
        _node('Add', 'a b_in', 'embedded'),
        _node('MatMul', 'embedded qkv', 'qkv_now'),
        helper.make_node('Split', ['qkv_now'], ['q', 'k_now', 'v_now'], axis=1),
    ]
    for ring, newest in (('k', 'k_row'), ('v', 'v_row'), ('m', 'none')):
        if ring != 'm':
            nodes.append(_node('Unsqueeze', f'{ring}_now time', newest))
        nodes.append(_node('Slice', f'{ring} one end time', f'{ring}_old'))
        nodes.append(helper.make_node('Concat', [f'{ring}_old', newest], [f'{ring}_new'], axis=1))
    nodes += [
        _node('Reshape', 'q q_heads', 'q4'),
        _node('Reshape', 'k_new heads', 'k4'),
        _node('Reshape', 'v_new heads', 'v4'),
        helper.make_node('Transpose', ['q4'], ['qt'], perm=[0, 2, 1, 3]),
        helper.make_node('Transpose', ['k4'], ['kt'], perm=[0, 2, 3, 1]),
        helper.make_node('Transpose', ['v4'], ['vt'], perm=[0, 2, 1, 3]),
        _node('MatMul', 'qt kt', 'products'),
        _node('Mul', 'products scale', 'scaled'),
        _node('Add', 'scaled m_new', 'scores'),
        helper.make_node('Softmax', ['scores'], ['shares'], axis=-1),
        _node('MatMul', 'shares vt', 'seen'),
        _node('Reshape', 'seen flat', 'joined'),
        _node('MatMul', 'joined o', 'attended'),
        _node('MatMul', 'attended out', 'product'),
        _node('Add', 'product b_out', 'y'),
    ]
    return nodes, constants, states


def _node(kind: str, inputs: str, output: str) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output])


def _tensor(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(shape))
