# %% [markdown]
# # From nn.EmbeddingBag to a store on disk
#
# This program is also a notebook: editors show the cells that begin with `# %%`. It needs embank,
# torch and numpy, draws plots with matplotlib, and prints bars where matplotlib is not installed.

# %%
import pathlib
import re
import tempfile

import embank.io
import embank.torch
import numpy as np
import torch
from torch import nn

try:
    import matplotlib.pyplot as plots
except ImportError:
    plots = None

FOLDER = tempfile.TemporaryDirectory()
PLACE = pathlib.Path(FOLDER.name)
BAR_WIDTH = 50


def draw(title: str, numbers: dict[str, float]) -> None:
    """Draws a bar for each number."""
    print(f'\n{title}')
    largest = max(numbers.values()) or 1
    for name, number in numbers.items():
        bar = '#' * round(BAR_WIDTH * number / largest) if plots is None else ''
        shown = f'{number:,}' if isinstance(number, int) else f'{number:.4f}'
        print(f'  {name:>12} {shown:>12} {bar}'.rstrip())
    if plots is not None:
        figure, axes = plots.subplots(figsize=(6, 3), layout='constrained')
        axes.bar(list(numbers), list(numbers.values()))
        axes.set_title(title)
        figure.savefig(PLACE / f'{title}.png')


# %% [markdown]
# ## A log of clicks
#
# A sample has a user and the five items that the user saw last. A hidden score of users and items
# decides about clicks. Some items are popular, and most are rare.

# %%
USERS, ITEMS, SEEN, SAMPLES, BATCH = 20_000, 200_000, 5, 160_000, 512
random = np.random.default_rng(1)
users = (USERS * random.random(SAMPLES) ** 2).astype(np.int64)
items = (ITEMS * random.random((SAMPLES, SEEN)) ** 2.5).astype(np.int64)
score = random.normal(0, 1, USERS)[users] + random.normal(0, 2, ITEMS)[items].mean(axis=1)
labels = (random.random(SAMPLES) < 1 / (1 + np.exp(-score))).astype(np.float32)

batches = [{'sparse': {'user': torch.from_numpy(users[begin:begin + BATCH]),
                       'items': torch.from_numpy(items[begin:begin + BATCH])},
            'labels': torch.from_numpy(labels[begin:begin + BATCH])}
           for begin in range(0, SAMPLES, BATCH)]
print(f'{len(batches)} batches of {BATCH}, {labels.mean():.0%} clicks')

# %% [markdown]
# ## The model with nn.EmbeddingBag
#
# `bags` is a module that returns a tensor of shape (batch, DIM) for each feature. The rows have an
# optimizer of their own, because their gradients are sparse.

# %%
DIM, RATE, DENSE_RATE = 16, 0.1, 0.02


class Bags(nn.Module):
    """Two modules nn.EmbeddingBag."""

    def __init__(self) -> None:
        super().__init__()
        self.user, self.items = (nn.EmbeddingBag(rows, DIM, mode='mean', sparse=True)
                                 for rows in (USERS, ITEMS))
        nn.init.uniform_(self.user.weight, -0.1, 0.1)
        nn.init.uniform_(self.items.weight, -0.1, 0.1)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the mean row of each bag."""
        return {'user': self.user(features['user'][:, None]),
                'items': self.items(features['items'])}


class Model(nn.Module):
    """The logit of a click, from the rows of both features."""

    def __init__(self, bags: nn.Module) -> None:
        super().__init__()
        self.bags = bags
        self.layers = nn.Sequential(nn.Linear(2 * DIM, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, features: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns the logit of each sample."""
        return self.layers(torch.cat(list(self.bags(features).values()), dim=1)).squeeze(1)


def train(model: Model, optimizers: list[torch.optim.Optimizer], some_batches) -> list[float]:
    """Makes a step with each batch and returns the losses."""
    losses = []
    for batch in some_batches:
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch['sparse']),
                                                              batch['labels'])
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(1)
torch_bags = Bags()
first_rows = {name: bag.weight.detach().clone() for name, bag in torch_bags.named_children()}
model = Model(torch_bags)
rows_optimizer = torch.optim.Adagrad(torch_bags.parameters(), lr=RATE, eps=1e-8)
dense_optimizer = torch.optim.Adagrad(model.layers.parameters(), lr=DENSE_RATE)
torch_losses = train(model, [rows_optimizer, dense_optimizer], batches[:60])
print(f'nn.EmbeddingBag: loss {torch_losses[0]:.4f} to {torch_losses[-1]:.4f}')

# %% [markdown]
# ## The same rows in a store
#
# `EmbeddingBagCollection` takes the place of `Bags`. Its tables need no size: a row is made when
# its key is first looked up in training. Rows are stepped inside `backward()`, so that the rows
# need no optimizer in the loop. With the first rows of `Bags`, the losses are the same.

# %%
FEATURES = {'user': (DIM, 'mean'), 'items': (DIM, 'mean')}
OPTIONS = {'optimizer': 'adagrad', 'lr': RATE, 'init': ('uniform', -0.1, 0.1)}


def new_model(store: embank.Store) -> tuple[Model, torch.optim.Optimizer]:
    """Returns the model over tables of a store, and the optimizer of its layers."""
    torch.manual_seed(1)
    Bags()  # draws as many random numbers as above, so that the layers begin as above
    made = Model(embank.torch.EmbeddingBagCollection(store, FEATURES, **OPTIONS))
    return made, torch.optim.Adagrad(made.parameters(), lr=DENSE_RATE)


memory = embank.Store(seed=1)
model, dense_optimizer = new_model(memory)
for name, rows in first_rows.items():
    memory.table(name).upsert(np.arange(len(rows)), rows)
losses = train(model, [dense_optimizer], batches[:60])
print(f'embank:          loss {losses[0]:.4f} to {losses[-1]:.4f}')
print(f'same losses: {np.allclose(losses, torch_losses, rtol=1e-4)}')

# %% [markdown]
# ## Rows larger than memory
#
# A store with a path has rows on disk. `dram_bytes` is the hard limit of what it takes in memory.
# `Prefetcher` reads the rows of the next batch while this one is trained.

# %%
store = embank.Store(PLACE / 'store', dram_bytes='20MiB', seed=1)
model, dense_optimizer = new_model(store)
half = len(batches) // 2
losses = train(model, [dense_optimizer], embank.torch.Prefetcher(batches[:half], model.bags))
table = store.table('items')
draw('Loss', {f'{begin}-{begin + 30}': float(np.mean(losses[begin:begin + 30]))
              for begin in range(0, half - 29, 30)})
draw('Rows by tier', {'memory': table.info.rows_dram, 'disk': table.info.rows_ssd})
print(f'{len(table):,} items have {len(table) * table.info.row_bytes / 2**20:.0f} MiB with the '
      f'state of Adagrad, and the store uses {store.memory_report()["dram"]["used"] / 2**20:.0f} '
      'MiB of memory')

# %% [markdown]
# ## Heat
#
# Each row counts its lookups. This heat decides which rows stay in memory. A scan reads it.

# %%
heats = np.concatenate([batch.heat for batch in table.scan(rows=False, heat=True)])
edges = [0, 1, 2, 4, 8, 16, 64, 2**20]
draw('Rows by heat', {f'to {end}': int(((heats > begin) & (heats <= end)).sum())
                      for begin, end in zip(edges, edges[1:])})
hottest = np.sort(heats)[::-1]
print(f'the hottest tenth of the rows has {hottest[:len(hottest) // 10].sum() / heats.sum():.0%} '
      'of the lookups')

# %% [markdown]
# ## Metrics
#
# `store.metrics()` is a text that Prometheus reads. It says, for example, where lookups found their
# rows. Few are read from the disk here, because `Prefetcher` has read them before. docs/metrics.md
# lists all metrics.

# %%
HITS = re.compile(r'embank_lookup_hits_total\{table="items",tier="(\w+)"\} (\d+)')
draw('Lookups of items by tier', {tier: int(count)
                                  for tier, count in HITS.findall(store.metrics())})

# %% [markdown]
# ## Checkpoints
#
# `save` keeps rows, layers and optimizer of one moment. What comes after the last checkpoint is
# lost when the process ends; `load` goes on at the checkpoint, with the same losses.

# %%
print('checkpoint', embank.torch.save(store, model=model, optimizer=dense_optimizer, step=half))
lost = train(model, [dense_optimizer], batches[half:half + 20])
store.close()

store = embank.Store(PLACE / 'store', dram_bytes='20MiB', seed=1)
model, dense_optimizer = new_model(store)
step = embank.torch.load(store, model=model, optimizer=dense_optimizer)
again = train(model, [dense_optimizer], batches[step:step + 20])
print(f'step {step}, same losses again: {again == lost}')

# %% [markdown]
# ## Files and predictions
#
# `embank.io` writes a table as a safetensors file, which other programs read, and reads it into
# another store. After `eval()` a model makes no rows: a new key gets its first values.

# %%
served = embank.Store(seed=1)
copy, _ = new_model(served)
copy.load_state_dict(model.state_dict())
for name in store.tables():
    path = PLACE / f'{name}.safetensors'
    count = embank.io.export_table(store.table(name), path)
    embank.io.import_table(served.table(name), path)
    print(f'{path.name}: {count:,} rows, {path.stat().st_size / 2**20:.1f} MiB')
with torch.no_grad():
    expected, found = (torch.sigmoid(one.eval()(batches[-1]['sparse'])) for one in (model, copy))
print(f'same predictions: {torch.equal(expected, found)}')
draw('Clicks by prediction', {
    f'{low:.1f}-{low + 0.2:.1f}': float(batches[-1]['labels'][(found >= low) & (
        found < low + 0.2)].nanmean().nan_to_num()) for low in np.arange(0, 1, 0.2)})
