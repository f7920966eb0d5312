"""
Recurrent layers and attention in JAX: every layer streams, every formula has its source.

Everything public is importable from here.
"""

from seqmem_ros.nn.dense import Dense
from seqmem_ros.nn.dense import Dropout
from seqmem_ros.nn.dense import LayerNorm
from seqmem_ros.nn.initializers import get_initializer
from seqmem_ros.nn.initializers import orthogonal
from seqmem_ros.nn.initializers import scaled_identity
from seqmem_ros.nn.initializers import xavier_normal
from seqmem_ros.nn.initializers import zeros
from seqmem_ros.nn.models import recurrent_net
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.module import Param
from seqmem_ros.nn.recurrent import GRU
from seqmem_ros.nn.recurrent import LSTM
from seqmem_ros.nn.recurrent import RNN
from seqmem_ros.nn.sequential import LastStep
from seqmem_ros.nn.sequential import Sequential

__all__ = [
    'GRU',
    'LSTM',
    'RNN',
    'Dense',
    'Dropout',
    'LastStep',
    'LayerNorm',
    'Module',
    'Param',
    'Sequential',
    'get_initializer',
    'orthogonal',
    'recurrent_net',
    'scaled_identity',
    'xavier_normal',
    'zeros',
]
