"""The exchange of tensors and texts between the ranks of torch.distributed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as _distributed

from embank import options as _options
from embank.errors import FailedPreconditionError, UnavailableError
from embank.estimate import RANKS_MAX

from . import _tensor

dist: Any = _distributed  # A torch without the feature has a module without the functions.
FAILED, DONE = '!', '='


def check_is_initialized() -> None:
    """Raises FailedPreconditionError unless torch.distributed has a process group."""
    if not dist.is_available() or not dist.is_initialized():
        raise FailedPreconditionError('there is no process group of torch.distributed: call '
                                      'torch.distributed.init_process_group() before')


class RankExchange:
    """The ranks of a process group. Each method is called by all of them, in the same order.

    UnavailableError: another rank has ended, or the network fails.
    """

    def __init__(self, process_group: Any = None) -> None:
        """Takes a group; None: that of all ranks."""
        check_is_initialized()
        self.group = process_group
        self.rank: int = dist.get_rank(process_group)
        self.ranks: int = dist.get_world_size(process_group)
        _options.integer(self.ranks, 'the number of ranks', 1, RANKS_MAX)
        is_nccl = dist.get_backend(process_group) == 'nccl'
        self._device = torch.device('cuda', torch.cuda.current_device()) if is_nccl else _tensor.CPU

    @classmethod
    def own(cls, backend: str | None = None) -> RankExchange:
        """Returns all ranks, with connections that nobody else uses."""
        check_is_initialized()
        return cls(dist.new_group(backend=backend))

    def parts(self, sent: torch.Tensor, sent_sizes: list[int],
              received_sizes: list[int]) -> torch.Tensor:
        """Sends a part of a flat tensor to each rank, and returns the parts from each of them."""
        received: torch.Tensor = torch.empty(sum(received_sizes), dtype=sent.dtype,
                                             device=self._device)
        self._run(dist.all_to_all_single, received, sent.to(self._device), received_sizes,
                  sent_sizes)
        on_host: torch.Tensor = received.cpu()
        return on_host

    def counts(self, sent: torch.Tensor) -> torch.Tensor:
        """Sends row r of an int64 matrix to rank r, and returns the rows from all ranks."""
        sizes = [sent.shape[1]] * self.ranks
        received: torch.Tensor = self.parts(sent.reshape(-1), sizes, sizes).view(sent.shape)
        return received

    def tables(self, sent: list[torch.Tensor], sent_counts: torch.Tensor,
               received_counts: torch.Tensor) -> list[torch.Tensor]:
        """Sends the rows of several matrices, which are in the order of the ranks.

        Counts of shape (ranks, matrices) say how many rows of each go to a rank, or come from it.
        It returns matrices of the same widths, whose rows are in the order of the ranks they are
        from.
        """
        widths = torch.tensor([matrix.shape[1] for matrix in sent])
        pieces = [torch.split(matrix, counts)
                  for matrix, counts in zip(sent, sent_counts.T.tolist())]
        flat = torch.cat([piece.reshape(-1) for to_rank in zip(*pieces) for piece in to_rank])
        sizes = received_counts * widths
        received = self.parts(flat, (sent_counts * widths).sum(1).tolist(), sizes.sum(1).tolist())
        found = torch.split(received, sizes.reshape(-1).tolist())
        return [torch.cat(found[at::len(sent)]).view(-1, matrix.shape[1])
                for at, matrix in enumerate(sent)]

    def sums(self, numbers: torch.Tensor) -> torch.Tensor:
        """Returns the sums of the numbers of all ranks, with the same bits on each."""
        numbers = numbers.to(self._device)
        self._run(dist.all_reduce, numbers)
        on_host: torch.Tensor = numbers.cpu()
        return on_host

    def together(self, action: Callable[[], str]) -> list[str]:
        """Runs an action, and returns what it has returned on each rank.

        If it fails on one rank, all ranks raise an exception: that one its own, the others a
        FailedPreconditionError with its message.
        """
        problem: Exception | None = None
        try:
            answer = DONE + action()
        except Exception as error:
            problem, answer = error, FAILED + f'{type(error).__name__}: {error}'
        answers = self._texts(answer)
        if problem is not None:
            raise problem
        for rank, text in enumerate(answers):
            if text.startswith(FAILED):
                raise FailedPreconditionError(f'rank {rank} of {self.ranks} has failed: {text[1:]}')
        return [text[1:] for text in answers]

    def _texts(self, text: str) -> list[str]:
        data = torch.tensor(list(text.encode()), dtype=torch.uint8)
        sizes = self.counts(torch.full((self.ranks, 1), len(data)))[:, 0].tolist()
        received = self.parts(data.repeat(self.ranks), [len(data)] * self.ranks, sizes)
        return [bytes(part.tolist()).decode() for part in torch.split(received, sizes)]

    def _run(self, collective: Any, *arguments: Any) -> None:
        try:
            collective(*arguments, group=self.group)
        except RuntimeError as error:
            raise UnavailableError(
                f'rank {self.rank} of {self.ranks} cannot reach the others: a rank has ended, or '
                'the network fails. End this process, and start all ranks again from their last '
                f'checkpoint ({error})') from error
