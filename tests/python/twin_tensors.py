"""Tensors that say they are on cuda:0, for the tests of embank.torch on a machine without CUDA.

They are in device memory of a store whose device is a twin: the library takes them, and host code
that uses their addresses faults.
"""
import contextlib
import ctypes
import dataclasses
import types
from unittest import mock

import embank
from embank._library import library
from torch_rows import modules, torch

CUDA = torch.device('cuda', 0)
TOKEN_BITS = 0x5A5A << 48  # gpu/twin_memory.h
COPIES = ('copy_', '__setitem__')  # They may be from one device to another.


def plain(tensor):
    """The same numbers in the same memory, as a tensor that is on the CPU."""
    with torch._C.DisableTorchFunction():
        return tensor.as_subclass(torch.Tensor)


def tensors_of(value):
    """All tensors of arguments."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(one)


class DeviceTensor(torch.Tensor):
    """Is on cuda:0, as its attributes say; the results of operations with it are, too."""

    memory = None  # where those are
    device = property(lambda self: CUDA)
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: True)

    def data_ptr(self):
        return plain(self).data_ptr() ^ TOKEN_BITS if self.numel() else 0

    def cpu(self):
        self.memory.wait()
        return plain(self).clone()

    def backward(self, gradient=None, retain_graph=None):
        # Within that of torch, operations with such tensors would not come to __torch_function__.
        torch.autograd.backward(plain(self), gradient, retain_graph)

    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), options=None):
        name = function.__name__
        is_indexed = name == '__getitem__' and isinstance(arguments[0], cls)
        if name not in COPIES and not is_indexed:
            for one in tensors_of([arguments, options or {}]):
                if not isinstance(one, cls) and one.dim():
                    raise RuntimeError(f'{name} has tensors on the devices cpu and {CUDA}')
        cls.memory.wait()
        found = super().__torch_function__(function, kinds, arguments, options or {})
        is_new = isinstance(found, cls) and name != '__get__' and not found.requires_grad
        return cls.memory.moved(found) if is_new else found


class TwinMemory:
    """Memory of the device of a store."""

    def __init__(self, store):
        self.store, self.ends = store, {}  # the end of each part of memory, by its begin
        self._byte = self._allocated(1, torch.uint8).data_ptr() ^ TOKEN_BITS

    def _allocated(self, size, dtype):
        token = ctypes.c_void_p()
        self.store._handle.call_store(library.embank_device_allocate, size, token)
        begin = token.value ^ TOKEN_BITS
        self.ends[begin] = begin + size
        array = (ctypes.c_char * size).from_address(begin)
        array.store = self.store  # which frees the memory
        return torch.frombuffer(array, dtype=dtype)

    def place(self, tensor):
        """A copy of a tensor on cuda:0."""
        if tensor.numel() == 0:
            return plain(tensor).detach().clone().as_subclass(DeviceTensor)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            parts = zip(tensor.shape, tensor.stride())
            span = 1 + sum((size - 1) * stride for size, stride in parts)
            memory = self._allocated(span * tensor.element_size(), tensor.dtype)
            memory.copy_(tensor.as_strided((span,), (1,)))
            return memory.as_strided(tensor.shape, tensor.stride()).as_subclass(DeviceTensor)

    def moved(self, result):
        """The result of an operation, in this memory."""
        at = plain(result).data_ptr()
        # A Prefetcher adds memory in its thread meanwhile.
        is_here = any(begin <= at < end for begin, end in list(self.ends.items()))
        return result if is_here else self.place(result)

    def wait(self):
        """Waits for earlier work, as operations of torch do on the stream."""
        self.store._handle.call_store(library.embank_device_copy, ctypes.create_string_buffer(1),
                                      self._byte, 1, None)


@contextlib.contextmanager
def tensors_in(memory):
    """Has torch make tensors of cuda:0 in a memory, and move others there."""
    moved = torch.Tensor.to

    def to(tensor, *arguments, **options):
        device = arguments[0] if arguments else None
        if not isinstance(device, (str, torch.device)):
            return moved(tensor, *arguments, **options)
        if torch.device(device) == tensor.device:
            return tensor
        return tensor.cpu() if torch.device(device).type == 'cpu' else memory.place(tensor)

    def maker(function):
        def make(*arguments, device=None, **options):
            if device != CUDA:
                return function(*arguments, device=device, **options)
            return memory.place(function(*arguments, **options))
        return make

    with mock.patch.object(DeviceTensor, 'memory', memory), \
            mock.patch.object(torch.Tensor, 'to', to), \
            mock.patch.object(torch, 'empty', maker(torch.empty)), \
            mock.patch.object(torch, 'zeros', maker(torch.zeros)):
        yield


class TwinDevice:
    """The twin of a store as cuda:0."""

    def __init__(self, store):
        self.store, self.memory = store, TwinMemory(store)
        self.stream, self.streams = 0, []  # torch's, and the device of each call that asked for it
        self.has_gradients = True  # and not host memory

    def _current_stream(self, device=None):
        self.streams.append(device)
        return types.SimpleNamespace(cuda_stream=self.stream)

    @contextlib.contextmanager
    def used(self):
        """Has torch and the store say that it is cuda:0, until the end."""
        options, linked = embank.Store.options.fget, modules._row_module.linked

        def options_of(store):
            ordinal = 0 if store is self.store else -1
            return dataclasses.replace(options(store), cuda_device=ordinal)

        def linked_on_device(module, *arguments):
            outputs = linked(module, *arguments)
            # torch makes gradients where it has the numbers of outputs, which is not cuda:0.
            for output in outputs:
                if module.device == CUDA and self.has_gradients and output.requires_grad:
                    output.register_hook(self.memory.place)
            return outputs

        with tensors_in(self.memory), \
                mock.patch.object(embank.Store, 'options', property(options_of)), \
                mock.patch.object(torch.cuda, 'current_stream', self._current_stream), \
                mock.patch.object(modules._row_module, 'linked', linked_on_device):
            yield
