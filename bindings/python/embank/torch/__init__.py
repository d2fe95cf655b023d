"""Modules of PyTorch whose rows are in a store: larger than memory, and stepped inside backward.

In the place of nn.Embedding and nn.EmbeddingBag; see docs/python.md. It needs torch 1.13 or later.

>>> import embank, torch
>>> store = embank.Store(seed=1)
>>> ebc = embank.torch.EmbeddingBagCollection(store, {'user': 8, 'tags': (8, 'mean')}, lr=0.02)
>>> pooled = ebc({'user': torch.tensor([4, 5]), 'tags': torch.tensor([[1, 2], [2, 3]])})
>>> sum(rows.square().sum() for rows in pooled.values()).backward()
>>> len(ebc.tables['tags'])
3
"""
from . import sharded
from .collection import EmbeddingBagCollection
from .embedding import Embedding
from .embedding_bag import EmbeddingBag
from .keyed_tensor import KeyedTensor
from .prefetcher import Prefetcher
from .row_optimizer import RowOptimizer
from .training_state import load, save

__all__ = ['Embedding', 'EmbeddingBag', 'EmbeddingBagCollection', 'KeyedTensor', 'Prefetcher',
           'RowOptimizer', 'load', 'save', 'sharded']
