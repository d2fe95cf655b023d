import embank
import numpy as np

with embank.Store('run', dram_bytes='1GiB', seed=1) as store:  # rows beyond 1 GiB go to disk
    items = store.table('items', dim=16, optimizer='adagrad', learning_rate=0.1)
    step = int(store.checkpoint_blob() or 0)  # where the last run has stopped
    keys = np.random.default_rng(step).integers(0, 10**6, 1024)
    rows = items.lookup(keys)  # (1024, 16); a key without a row gets one
    items.apply_gradients(keys, rows - 1)  # a step of Adagrad for each distinct key
    store.checkpoint(str(step + 1).encode())  # rows and step of one moment
    print(f'step {step + 1}: {len(items)} rows, loss {np.mean((rows - 1) ** 2):.4f}')
