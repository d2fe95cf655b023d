import embank.torch
import torch

store = embank.Store('run', dram_bytes='1GiB', seed=1)  # rows beyond 1 GiB go to disk
bags = embank.torch.EmbeddingBagCollection(store, {'user': 16, 'item': (16, 'mean')}, lr=0.1)
top = torch.nn.Linear(32, 1)
optimizer = torch.optim.Adagrad(top.parameters(), lr=0.1)
step = embank.torch.load(store, model=top, optimizer=optimizer)  # where the last run has stopped
ids = torch.randint(10**6, (1024, 3), generator=torch.Generator().manual_seed(step))
pooled = bags({'user': ids[:, 0].contiguous(), 'item': ids[:, 1:].contiguous()})
loss = (top(torch.cat(list(pooled.values()), dim=1)) - 1).square().mean()
loss.backward()  # steps the rows, too
optimizer.step()
embank.torch.save(store, model=top, optimizer=optimizer, step=step + 1)  # all of one moment
print(f'step {step + 1}: loss {loss.item():.4f}, {len(bags.tables["item"])} items')
