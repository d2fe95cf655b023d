"""Import and export of tables: safetensors, npy, and the files of other stores of embeddings.

>>> import embank, embank.io, numpy as np, tempfile
>>> store = embank.Store()
>>> items = store.table('items', dim=4, optimizer='adagrad')
>>> _ = items.lookup(np.arange(10, dtype=np.uint64))
>>> path = tempfile.mkdtemp() + '/items.safetensors'
>>> embank.io.export_table(items, path)
10
>>> embank.io.import_table(store.table('copy', dim=4, optimizer='adagrad'), path)
10
"""
from .transfer import FORMATS, PartialImportError, export_table, import_table

__all__ = ['FORMATS', 'PartialImportError', 'export_table', 'import_table']
