"""
Recurrent layers and attention in JAX: every layer streams, every formula has its source.

Everything public is importable from here.
"""

from seqmem_ros.nn.attention import MultiHeadSelfAttention
from seqmem_ros.nn.attention_cache import WindowCache
from seqmem_ros.nn.dense import Dense
from seqmem_ros.nn.dense import Dropout
from seqmem_ros.nn.dense import LayerNorm
from seqmem_ros.nn.initializers import get_initializer
from seqmem_ros.nn.initializers import orthogonal
from seqmem_ros.nn.initializers import scaled_identity
from seqmem_ros.nn.initializers import xavier_normal
from seqmem_ros.nn.initializers import zeros
from seqmem_ros.nn.models import causal_transformer
from seqmem_ros.nn.models import recurrent_net
from seqmem_ros.nn.models import transformer_encoder
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.param import Param
from seqmem_ros.nn.pooling import LastStep
from seqmem_ros.nn.pooling import MeanOverTime
from seqmem_ros.nn.positions import AddPositions
from seqmem_ros.nn.positions import rotate
from seqmem_ros.nn.positions import sinusoids
from seqmem_ros.nn.ragged import forward_padded
from seqmem_ros.nn.ragged import forward_sequences
from seqmem_ros.nn.ragged import pad_sequences
from seqmem_ros.nn.ragged import unpad
from seqmem_ros.nn.ragged import unroll_padded
from seqmem_ros.nn.recurrent import GRU
from seqmem_ros.nn.recurrent import LSTM
from seqmem_ros.nn.recurrent import RNN
from seqmem_ros.nn.scaled_dot_product import masked_softmax
from seqmem_ros.nn.scaled_dot_product import scaled_dot_product_attention
from seqmem_ros.nn.sequential import Bidirectional
from seqmem_ros.nn.sequential import Residual
from seqmem_ros.nn.sequential import Sequential
from seqmem_ros.nn.transformer import TransformerBlock

__all__ = [
    'GRU',
    'LSTM',
    'RNN',
    'AddPositions',
    'Bidirectional',
    'Dense',
    'Dropout',
    'LastStep',
    'LayerNorm',
    'MeanOverTime',
    'Module',
    'MultiHeadSelfAttention',
    'Param',
    'Residual',
    'Sequential',
    'TransformerBlock',
    'WindowCache',
    'causal_transformer',
    'forward_padded',
    'forward_sequences',
    'get_initializer',
    'masked_softmax',
    'orthogonal',
    'pad_sequences',
    'recurrent_net',
    'rotate',
    'scaled_dot_product_attention',
    'scaled_identity',
    'sinusoids',
    'transformer_encoder',
    'unpad',
    'unroll_padded',
    'xavier_normal',
    'zeros',
]
