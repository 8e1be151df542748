"""Where networks are trained: device, threads, precision, random state, and the limits of memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import torch

from leakbound.core.workers import worker_number
from leakbound.releases.networks.recipe import Recipe

T = TypeVar("T")


def device_of(recipe: Recipe) -> torch.device:
    """Return the device of a recipe; workers of one machine take its GPUs in turn, unless the recipe numbers one."""
    has_gpu = torch.cuda.is_available()
    if recipe.device == "mps":
        if not torch.backends.mps.is_available():
            raise ValueError("device='mps' needs the GPU of an Apple computer, and there is none; device='cpu' works")
        return torch.device("mps")
    if recipe.device.startswith("cuda"):
        if not has_gpu:
            raise ValueError(
                f"device={recipe.device!r} needs a GPU that PyTorch can use, and there is none; device='auto' takes one"
            )
        device = torch.device(recipe.device)
        n_gpus = torch.cuda.device_count()
        if device.index is not None and device.index >= n_gpus:
            raise ValueError(
                f"device={recipe.device!r}: PyTorch sees {n_gpus} GPU{'s' * (n_gpus != 1)}, numbered from cuda:0 on"
            )
        return device if device.index is not None else _gpu_of_this_worker()
    return _gpu_of_this_worker() if has_gpu and recipe.device == "auto" else torch.device("cpu")


def is_on_gpu(recipe: Recipe) -> bool:
    """Tell whether a recipe trains on a GPU of CUDA here; False too where it names one that is not there."""
    return recipe.device.startswith(("cuda", "auto")) and torch.cuda.is_available()


def _gpu_of_this_worker() -> torch.device:
    """Return the GPU of CUDA's choice outside of workers; in worker i of a machine with n GPUs, number i modulo n."""
    number, n_gpus = worker_number(), torch.cuda.device_count()
    return torch.device("cuda") if number is None or n_gpus < 2 else torch.device("cuda", number % n_gpus)


@contextmanager
def working(recipe: Recipe) -> Iterator[torch.device]:
    """Set one thread, and restore their number afterwards.

    Threads on busy processors cost up to eight times what they save. With one thread the results do not depend on the
    number of workers. On a GPU of CUDA the same sums are added in the same order every time; see `_repeatable`.
    """
    device = device_of(recipe)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _repeatable() if device.type == "cuda" else nullcontext():
            yield device
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _repeatable() -> Iterator[None]:
    """Let CUDA give the same bytes every time, in float32 rather than TF32, and restore its settings afterwards.

    Of an operation that can only be done in an order by chance PyTorch warns, by name, and does it.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it is first called
    cudnn = torch.backends.cudnn
    debugging: Any = torch.utils.deterministic
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    was_filled = debugging.fill_uninitialized_memory
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        debugging.fill_uninitialized_memory = False  # takes time, and shows reads of memory that was never written
        with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.use_deterministic_algorithms(was_deterministic, warn_only=only_warned)
        debugging.fill_uninitialized_memory = was_filled


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed PyTorch's random numbers, and restore their state afterwards."""
    kind = "cpu" if device is None else device.type
    gpus: list[int] = []
    if device is not None and kind == "cuda":
        gpus = [torch.cuda.current_device() if device.index is None else device.index]
    mps_state = torch.mps.get_rng_state() if kind == "mps" else None
    try:
        with torch.random.fork_rng(devices=gpus):
            torch.default_generator.manual_seed(seed)
            for gpu in gpus:
                with torch.cuda.device(gpu):
                    torch.cuda.manual_seed(seed)
            if mps_state is not None:
                torch.mps.manual_seed(seed)
            yield
    finally:
        if mps_state is not None:
            torch.mps.set_rng_state(mps_state)


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory did not suffice."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def with_less(work: Callable[[int], T], size: int, refusal: str) -> T:
    """Do a piece of work in parts of this size, and halve the size whenever memory does not suffice."""
    while True:
        try:
            return work(size)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if size == 1:
                raise MemoryError(refusal) from None
        size //= 2


@contextmanager
def clear_of_memory(refusal: str) -> Iterator[None]:
    """Replace every error about memory by one with this message."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise MemoryError(refusal) from None
