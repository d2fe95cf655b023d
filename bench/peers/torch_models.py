"""The models of embank-train in PyTorch, layer by layer."""
from needs import import_torch

torch, np = import_torch()
functional = torch.nn.functional

DEEP_WIDTHS = (64, 32)


class Tables(torch.nn.Module):
    """An EmbeddingBag for each id feature."""

    def __init__(self, sizes: list[int], dim: int):
        super().__init__()
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(size, dim, mode='sum', sparse=True,
                                  _weight=torch.zeros(size, dim)) for size in sizes)

    def forward(self, ids, offsets):
        return [bag(ids[i], offsets) for i, bag in enumerate(self.bags)]


class Layers(torch.nn.Module):
    """Linear layers, one behind the other. `ends_in_relu`: there is one behind the last, too."""

    def __init__(self, inputs: int, widths: list[int], ends_in_relu: bool):
        super().__init__()
        self.linear = torch.nn.ModuleList()
        self.ends_in_relu = ends_in_relu
        for width in widths:
            self.linear.append(torch.nn.Linear(inputs, width))
            inputs = width

    def forward(self, x):
        for i, layer in enumerate(self.linear):
            x = layer(x)
            if self.ends_in_relu or i + 1 < len(self.linear):
                x = functional.relu(x)
        return x


class Dlrm(torch.nn.Module):
    def __init__(self, dense: int, features: int, dim: int):
        super().__init__()
        self.bottom = Layers(dense, [512, 256, 64, dim], ends_in_relu=True)
        rows, columns = np.tril_indices(features + 1, -1)
        self.pairs = (torch.from_numpy(rows), torch.from_numpy(columns))
        self.top = Layers(dim + len(rows), [512, 256, 1], ends_in_relu=False)

    def forward(self, dense, vectors, wide):
        x = self.bottom(dense)
        stacked = torch.stack([x, *vectors], dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        pairs = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, pairs], dim=1))[:, 0]


class WideDeep(torch.nn.Module):
    def __init__(self, dense: int, features: int, dim: int):
        super().__init__()
        self.deep = Layers(dense + features * dim, [*DEEP_WIDTHS, 1], ends_in_relu=False)

    def forward(self, dense, vectors, wide):
        deep = self.deep(torch.cat([dense, *vectors], dim=1))
        return (sum(wide) + deep)[:, 0]


class DeepFm(torch.nn.Module):
    def __init__(self, dense: int, features: int, dim: int):
        super().__init__()
        self.deep = Layers(dense + features * dim, [*DEEP_WIDTHS, 1], ends_in_relu=False)

    def forward(self, dense, vectors, wide):
        deep = self.deep(torch.cat([dense, *vectors], dim=1))[:, 0]
        stacked = torch.stack(vectors, dim=1)
        squares = stacked.sum(dim=1).square() - stacked.square().sum(dim=1)
        return sum(wide)[:, 0] + 0.5 * squares.sum(dim=1) + deep


MODELS = {'dlrm': Dlrm, 'wide-deep': WideDeep, 'deep-fm': DeepFm}


def load_weights(model, path: str):
    """Sets all dense parameters: for each layer its matrix, then its biases."""
    values = torch.from_numpy(np.fromfile(path, '<f4').astype(np.float32))
    begin = 0
    with torch.no_grad():
        for parameter in model.parameters():
            end = begin + parameter.numel()
            parameter.copy_(values[begin:end].view_as(parameter))
            begin = end
    if begin != len(values):
        raise ValueError(f'{path} has {len(values)} weights, and the model {begin}')
