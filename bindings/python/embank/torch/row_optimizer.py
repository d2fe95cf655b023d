"""RowOptimizer: the rows of modules, as schedulers, clip_grad_norm_ and GradScaler see them."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from embank.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from embank.feature import Feature
from embank.table import Table

from . import _gradient
from ._batch import Batch, Gradients
from ._row_module import RowModule


class RowOptimizer(torch.optim.Optimizer):
    """The tables of modules as an optimizer of torch, with a parameter group for each table.

    `modules`: a model, whose row modules are found, or a list of such. A group has the 'name' of
    its table and its 'lr', which is that of the steps from then on: so a scheduler of torch sets
    it. A module has at most one RowOptimizer, and those of one have the same store.

    Rows are stepped inside backward(), and step() and zero_grad() do nothing. With deferred=True,
    backward() only sums the gradients of each key, step() steps the rows, and zero_grad() drops
    the sums. This is what gradient accumulation, GradScaler and clip_grad_norm_ need. The one
    parameter of a group is a number then, and its grad the Euclidean norm of the table's sums.
    What divides that grad divides the sums: clip_grad_norm_ of the parameters of a model and of
    those of its RowOptimizer clips all of them by their common norm of type 2, and GradScaler finds
    infinities in it.

    FailedPreconditionError: a GradScaler steps an optimizer that is not deferred: its rows were
    stepped by scaled gradients.

    >>> import embank
    >>> bag = embank.torch.EmbeddingBag(embank.Store(), 'items', 2, optimizer='sgd', lr=1.0)
    >>> rows = RowOptimizer(bag, deferred=True)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(rows, 10)
    >>> bag(torch.tensor([[1, 2]])).sum().backward()
    >>> bag(torch.tensor([[1, 2]])).sum().backward()
    >>> float(rows.param_groups[0]['params'][0].grad)
    2.0
    >>> rows.step()
    >>> rows.zero_grad()
    """

    def __init__(self, modules: torch.nn.Module | Iterable[torch.nn.Module], *,
                 deferred: bool = False) -> None:
        self._modules = _row_modules(modules)
        self._tables: dict[str, Table] = {}
        for module in self._modules:
            self._tables.update(module.tables)
        self._store = self._modules[0].store
        self._deferred = deferred
        self._sums: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        self._norms: dict[str, torch.Tensor] = {}
        device = self._modules[0].device
        groups: list[dict[str, Any]] = [
            {'params': [torch.nn.Parameter(torch.zeros(1, device=device))],
             'lr': table.learning_rate, 'name': name}
            for name, table in self._tables.items()]
        self._rates = [group['lr'] for group in groups]
        super().__init__(groups, {'lr': self._rates[0]})
        for module in self._modules:
            module._row_optimizer = self

    @property
    def is_deferred(self) -> bool:
        """Whether step() steps the rows, and not backward()."""
        return self._deferred

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Says to a GradScaler that it gives itself to step(), which refuses it."""
        return not self._deferred

    def takes(self, batch: Batch, gradients: Gradients) -> bool:
        """Is for the backward of a module: sets learning rates, and says whether it is deferred."""
        if not self._deferred:
            self._set_rates()
            return False
        if len(batch.parts) != len(gradients):
            raise FailedPreconditionError('the RowOptimizer was made between forward and backward; '
                                          'make it before')
        added: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for part, gradient in zip(batch.parts, gradients):
            if gradient is not None:
                on_host = gradient.detach().float().cpu()
                added.setdefault(part.column.table.name, []).append(
                    _gradient.of_positions(part, on_host))
        # A failure comes before the sums of any table have changed.
        for name, pairs in added.items():
            if name in self._sums:
                pairs.insert(0, self._scaled(name))
        for name, pairs in added.items():
            self._set_sums(name, pairs)
        return True

    def _set_sums(self, name: str, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Sums the gradients of the positions of a table."""
        keys, inverse = torch.unique(torch.cat([pair[0] for pair in pairs]), return_inverse=True)
        rows = torch.cat([pair[1] for pair in pairs])
        sums = torch.zeros(len(keys), rows.shape[1]).index_add_(0, inverse, rows)
        self._sums[name] = keys, sums
        norm = sums.double().norm().float().reshape(1)
        parameter = self._parameter(name)
        self._norms[name], parameter.grad = norm, norm.clone().to(parameter.device)

    def _parameter(self, name: str) -> torch.nn.Parameter:
        at = list(self._tables).index(name)
        parameter: torch.nn.Parameter = self.param_groups[at]['params'][0]
        return parameter

    def _scaled(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the keys and sums of a table, multiplied as its grad was since."""
        keys, sums = self._sums[name]
        norm, grad = self._norms[name], self._grad(name)
        # A norm of 0 or that is not finite was multiplied by nothing that can be known.
        has_factor = bool(norm.isfinite()) and bool(norm > 0)
        return keys, sums * (grad.detach().cpu() / norm) if has_factor else sums

    def check_grads(self, names: Iterable[str]) -> None:
        """Raises FailedPreconditionError if a table of these has sums and lost their grad."""
        for name in names:
            if name in self._sums:
                self._grad(name)

    def _grad(self, name: str) -> torch.Tensor:
        grad = self._parameter(name).grad
        if grad is None:
            raise FailedPreconditionError(f'the grad of table {name} was removed: zero_grad() of '
                                          'the RowOptimizer drops sums')
        return grad

    def _set_rates(self) -> None:
        rates = [float(group['lr']) for group in self.param_groups]
        if rates != self._rates:
            for table, rate, known in zip(self._tables.values(), rates, self._rates):
                if rate != known:
                    table.learning_rate = rate
            self._rates = rates

    def step(self, closure: Callable[[], Any] | None = None, *,
             grad_scaler: Any = None) -> Any:
        """Steps the rows, if deferred, by the sums of their gradients; else it does nothing.

        As with other optimizers the sums stay until zero_grad().
        """
        # A GradScaler gives itself, or from some version of torch on sets found_inf.
        if grad_scaler is not None or hasattr(self, 'found_inf'):
            raise FailedPreconditionError(
                'a GradScaler needs RowOptimizer(..., deferred=True): without it, rows were '
                'stepped by scaled gradients inside backward()')
        loss = None
        if closure is not None:
            with torch.set_grad_enabled(True):
                loss = closure()
        self._set_rates()
        if not self._sums:
            return loss
        features, gradients = [], []
        for name in self._sums:
            keys, sums = self._scaled(name)
            features.append(Feature(self._tables[name], keys))
            gradients.append(sums)
        try:
            self._store.apply_gradients_packed(features, gradients)
        except NotFoundError:
            # Rows of a table that forgets may go between forward and step.
            if all(table.options.on_full == 'refuse' for table in self._tables.values()):
                raise
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the sums of gradients."""
        self._sums.clear()
        self._norms.clear()
        super().zero_grad(set_to_none=True)


def _row_modules(modules: torch.nn.Module | Iterable[torch.nn.Module]) -> list[RowModule]:
    roots = [modules] if isinstance(modules, torch.nn.Module) else list(modules)
    found: dict[RowModule, None] = {}
    for root in roots:
        if not isinstance(root, torch.nn.Module):
            raise TypeError(f'modules has a {type(root).__name__}; it must be modules')
        found.update(dict.fromkeys(module for module in root.modules()
                                   if isinstance(module, RowModule)))
    if not found:
        raise InvalidArgumentError('modules has no module with rows of a store')
    for module in found:
        if module._row_optimizer is not None:
            raise FailedPreconditionError(f'{module} has a RowOptimizer already')
        if module.store is not next(iter(found)).store:
            raise InvalidArgumentError('modules has rows of two stores; each needs a RowOptimizer '
                                       'of its own')
    return list(found)
