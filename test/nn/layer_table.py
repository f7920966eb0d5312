"""Every kind of layer and network once, small, as one table for the laws that all must keep."""

from seqmem_ros.nn import AddPositions
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import Dense
from seqmem_ros.nn import Dropout
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LastStep
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MeanOverTime
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import transformer_encoder
from seqmem_ros.nn import TransformerBlock

WIDTH = 4  # of the input of everything in the table
WINDOW = 5
SHORT = WINDOW + 1  # samples in most tests: one length, compiled once
CAUSAL = {'causal': True, 'positions': 'rotary'}

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}


def causal(depth):
    # gelu, since a relu that is never above zero would have no gradient.
    return lambda key: causal_transformer(
        WIDTH, 4, 2, 6, depth, 3, key, window=WINDOW, activation='gelu'
    )


STREAMING = {
    'rnn': lambda key: RNN(WIDTH, 3, key),
    'rnn relu': lambda key: RNN(WIDTH, 3, key, activation='relu', bias=False),
    'gru': lambda key: GRU(WIDTH, 3, key),
    'gru reset after': lambda key: GRU(WIDTH, 3, key, reset_after=True),
    'gru normalised': lambda key: GRU(WIDTH, 3, key, layer_norm=True),
    'lstm': lambda key: LSTM(WIDTH, 3, key),
    'lstm no peepholes': lambda key: LSTM(WIDTH, 3, key, peepholes=False, layer_norm=True),
    'dense': lambda key: Dense(WIDTH, 3, key, activation='gelu'),
    'layer norm': lambda key: LayerNorm(WIDTH),
    'dropout': lambda key: Dropout(0.5),
    'positions': lambda key: AddPositions(40, WIDTH),
    'last': lambda key: Sequential(Dense(WIDTH, 3, key), LastStep()),
    'mean': lambda key: Sequential(Dense(WIDTH, 3, key), MeanOverTime()),
    'mean of window': lambda key: Sequential(Dense(WIDTH, 3, key), MeanOverTime(WINDOW)),
    'residual': lambda key: Residual(GRU(WIDTH, WIDTH, key)),
    'attention growing': lambda key: MultiHeadSelfAttention(WIDTH, 2, key, **CAUSAL),
    'attention window': lambda key: MultiHeadSelfAttention(
        WIDTH, 2, key, causal=True, window=WINDOW
    ),
    'attention window rotary': lambda key: MultiHeadSelfAttention(
        WIDTH, 2, key, window=WINDOW, **CAUSAL
    ),
    'block window': lambda key: TransformerBlock(
        WIDTH, 2, 6, key, dropout=0.1, window=WINDOW, **CAUSAL
    ),
    'rnn net': lambda key: recurrent_net(WIDTH, 3, 2, key, cell='rnn'),
    'gru net deep': lambda key: recurrent_net(WIDTH, 3, 2, key, 'gru', n_layers=3, dropout=0.2),
    'lstm net last': lambda key: recurrent_net(WIDTH, 3, 2, key, last_only=True),
    'transformer depth 1': causal(1),
    'transformer depth 3': causal(3),
    'nested': lambda key: Sequential(
        Dense(WIDTH, 4, key),
        Residual(Sequential(LayerNorm(4), GRU(4, 4, key), Dropout(0.3))),
        AddPositions(40, 4),
        MultiHeadSelfAttention(4, 2, key, window=WINDOW, **CAUSAL),
        MeanOverTime(3),
        Dense(4, 2, key),
    ),
}
WHOLE = {  # whole sequences only
    'bidirectional': lambda key: Bidirectional(GRU(WIDTH, 3, key), LSTM(WIDTH, 2, key)),
    'attention to all': lambda key: MultiHeadSelfAttention(WIDTH, 2, key, positions='rotary'),
    'block to all': lambda key: TransformerBlock(WIDTH, 2, 6, key, activation='gelu', bias=True),
    'encoder depth 1': lambda key: transformer_encoder(
        WIDTH, 4, 2, 6, 1, 3, key, 40, activation='gelu'
    ),
    'encoder depth 3': lambda key: transformer_encoder(
        WIDTH, 4, 2, 6, 3, 3, key, 40, dropout=0.2, activation='gelu'
    ),
    'residual of both ways': lambda key: Residual(
        Bidirectional(RNN(WIDTH, 2, key), RNN(WIDTH, 2, key))
    ),
}
ALL = STREAMING | WHOLE
