"""Train many modules of one architecture at once, whatever it is, through ``torch.func``."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from paperlib.training.config import TrainingConfig
from paperlib.training.examples import Examples, check_examples, check_records, default_device
from paperlib.training.fitting import check_outputs, mean_loss, seeded
from paperlib.training.many.ensembles import stackable
from paperlib.training.many.stacks import train_stack
from paperlib.training.many.trained import Ensemble, warn_of_divergence
from paperlib.training.progress import progress_bar

_CHUNK = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleEnsemble(Ensemble):
    """Trained modules of one architecture.

    Attributes:
        skeleton: The architecture; its own values are not used.
        tensors: Parameters and buffers by name, each (K, ...).
    """

    skeleton: nn.Module
    tensors: dict[str, Tensor]

    def model(self, index: int) -> nn.Module:
        module = copy.deepcopy(self.skeleton)
        number = range(len(self))[index]
        module.load_state_dict({name: tensor[number] for name, tensor in self.tensors.items()})
        return module.eval()

    def state(self) -> dict[str, Any]:
        return {
            "configs": [config.to_dict() for config in self.configs],
            "diverged": dict(self.diverged),
            "tensors": self.tensors,
        }

    @property
    def _width(self) -> int:
        return 4096  # What a module keeps between its layers cannot be seen from outside.

    def _logits_of(self, x: Tensor) -> Tensor:
        call = vmap(lambda tensors: functional_call(self.skeleton, tensors, (x,)))
        return call(self.tensors)

    def _checked(self, x: Any) -> Tensor:
        return check_records(x).to(next(iter(self.tensors.values())).device)


def fit_module_ensemble(
    modules: Sequence[nn.Module],
    configs: Sequence[TrainingConfig],
    x: Any,
    y: Any,
    *,
    device: torch.device | str | None = None,
    chunk: int = _CHUNK,
    progress: bool = True,
) -> ModuleEnsemble:
    """Train one module for each config on the same records, without DP.

    Guarantee:
        Up to float rounding, each is the model that ``fit`` trains from the same module and config,
        unless the module draws random numbers (dropout): those then depend on the stack.

    Args:
        modules: One for each config, of one architecture, left as they are.
        configs: Without ``clip_norm``; ``widths`` are not looked at.
        x: Records, shape (n, ...), finite.
        y: Class numbers, shape (n,); 0 or 1 for one output.
        device: With None, CUDA where there is one, else the CPU.
        chunk: Models in a stack.
        progress: Whether to show a bar.

    Raises:
        ValueError: Not one module for each config, architectures that differ, batch norm, DP-SGD, or
            data that do not fit.

    Warns:
        DivergenceWarning: Some models' parameters are not finite; the others are not affected.

    >>> modules = [nn.Linear(2, 1) for _ in range(3)]
    >>> config = TrainingConfig(epochs=1, batch_size=2, learning_rate=0.1)
    >>> models = fit_module_ensemble(modules, [config] * 3, [[0.0, 1.0], [1.0, 0.0]], [0, 1], device="cpu")
    >>> models.logits([[1.0, 1.0]]).shape
    torch.Size([3, 1, 1])
    """
    _check(modules, configs)
    place = default_device(device)
    skeleton = copy.deepcopy(modules[0]).to(place)
    data = check_examples(x, y, classes=check_outputs(skeleton, x, place), device=place)
    with torch.no_grad():
        stacked = [copy.deepcopy(module).to(place).state_dict() for module in modules]
        tensors = {name: torch.stack([state[name] for state in stacked]) for name in stacked[0]}
    bar = progress_bar(
        sum(config.epochs for config in configs), label="training", unit="epoch", show=progress
    )
    diverged: dict[int, int] = {}
    with bar:
        for part in stackable(configs, lambda _: chunk):
            chosen = [configs[index] for index in part]
            stack = _ModuleStack(skeleton, [modules[index] for index in part], chosen, data)
            lost = train_stack(stack, chosen, data, on_epoch=bar.update)
            diverged |= {part[model]: epoch for model, epoch in lost.items()}
            rows = torch.tensor(part, device=place)
            for name, tensor in stack.tensors.items():
                tensors[name][rows] = tensor.detach()
    warn_of_divergence(diverged, len(configs))
    return ModuleEnsemble(
        configs=tuple(configs),
        diverged=dict(sorted(diverged.items())),
        skeleton=skeleton.eval(),
        tensors=tensors,
    )


def _check(modules: Sequence[nn.Module], configs: Sequence[TrainingConfig]) -> None:
    if not modules or len(modules) != len(configs):
        raise ValueError(
            f"modules: expected one for each of {len(configs)} configs, and at least one, got {len(modules)}"
        )
    if any(config.is_private for config in configs):
        raise ValueError("configs: expected clip_norm None; train with DP-SGD through fit_dp or fit_ensemble")
    shapes = [{name: tensor.shape for name, tensor in module.state_dict().items()} for module in modules]
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(f"modules: expected one architecture, got other parameters at index {index}")
    for name, layer in modules[0].named_modules():
        if getattr(layer, "running_mean", None) is not None:
            raise ValueError(
                f"modules: expected no batch norm, whose running averages cannot be stacked, "
                f"got it at {name!r}; group norm works"
            )


class _ModuleStack:
    """Stacked parameters of K modules, and their gradients by ``vmap(grad)``."""

    def __init__(
        self,
        skeleton: nn.Module,
        modules: Sequence[nn.Module],
        configs: Sequence[TrainingConfig],
        data: Examples,
    ) -> None:
        self._skeleton, self._seed, self._device = skeleton, configs[0].seed, data.y.device
        parameters, buffers = stack_module_state(
            [copy.deepcopy(module).to(self._device) for module in modules]
        )
        self._parameters = {name: tensor.detach() for name, tensor in parameters.items()}
        self._buffers = buffers
        self._gradient = vmap(grad(self._loss), randomness="different")

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {**self._parameters, **self._buffers}

    @property
    def parameters(self) -> list[Tensor]:
        return list(self._parameters.values())

    def start(self, epoch: int, count: int) -> None:
        self._epoch, self._step, self._count = epoch, 0, count
        self._skeleton.train()

    def gradients(self, x: Tensor, y: Tensor, present: Tensor | None) -> list[Tensor]:
        parameters, buffers = (
            {name: tensor[: self._count] for name, tensor in group.items()}
            for group in (self._parameters, self._buffers)
        )
        self._step += 1
        with seeded(self._seed, self._epoch * 2**32 + self._step, self._device):
            return list(self._gradient(parameters, buffers, x, y).values())

    def _loss(self, parameters: Any, buffers: Any, x: Tensor, y: Tensor) -> Tensor:
        return mean_loss(functional_call(self._skeleton, (parameters, buffers), (x,)), y)
