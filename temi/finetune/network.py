"""Backbone and heads as one trainable network, and the conversion back to both."""

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from temi.backbones.base import Backbone, hash_tensors
from temi.backbones.catalog import finetuned_name
from temi.backbones.weights import load_exactly
from temi.errors import TemiError
from temi.model import ClusterModel
from temi.standardize import Standardizer
from temi.training.heads import Heads
from temi.training.optimizer import RestorableAdamW


class Network(nn.Module):
    """Maps normalized pixels to the log-probabilities of every head.

    Always in evaluation mode: the batches are too small to estimate batch-norm statistics, so the
    pretrained statistics are kept and only scale and shift are trained. Dropout would be an
    augmentation, which does not help with pairs of neighbors.
    """

    def __init__(self, backbone: Backbone, models: Sequence[ClusterModel]) -> None:
        super().__init__()
        _check(backbone, models)
        self.temperature = models[0].temperature
        self.extractor = copy.deepcopy(backbone.module).requires_grad_(True)
        self.heads = _stack(models)
        tensors = models[0].tensors()
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.from_numpy(tensors["mean"].copy()))
        self.register_buffer("std", torch.from_numpy(tensors["std"].copy()))
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        features = self.extractor(images).float()  # (B, D)
        # The standardization is fixed: heads and features change together and slowly.
        logits: Tensor = self.heads((features - self.mean) / self.std)
        return (logits.float() / self.temperature).log_softmax(dim=-1)  # (H, B, C)

    def model(self, head: int) -> ClusterModel:
        """Return one head as a model on the features of this network's extractor."""
        standardizer = Standardizer(mean=self.mean.cpu().numpy(), std=self.std.cpu().numpy())
        return self.heads.to_model(head, standardizer, None, self.temperature)


def network_optimizer(network: Network, *, weight_decay: float) -> RestorableAdamW:
    """Four parts with their own learning rates: two of the extractor, then two of the heads."""
    extractor = list(network.extractor.parameters())
    # Biases and norm scales have one axis and get no weight decay.
    return RestorableAdamW(
        network,
        [
            ([p for p in extractor if p.ndim > 1], weight_decay),
            ([p for p in extractor if p.ndim <= 1], 0.0),
            (network.heads.decayed(), weight_decay),
            (network.heads.undecayed(), 0.0),
        ],
    )


def backbone_tensors(backbone: Backbone) -> dict[str, Tensor]:
    """Return all weights under the names of its module, to store as safetensors.

    For a timm backbone, ``load_backbone("timm:NAME@path")`` reads such a file.
    """
    # Clones: safetensors rejects tensors that share memory, such as tied weights.
    return {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in backbone.module.state_dict().items()
    }


def with_weights(backbone: Backbone, tensors: Mapping[str, Tensor]) -> Backbone:
    """Return a copy of the backbone with these weights."""
    module = copy.deepcopy(backbone.module)
    load_exactly(module, tensors, origin="the set of tensors")
    return Backbone(
        name=finetuned_name(backbone.name),
        module=module,
        preprocessing=backbone.preprocessing,
        weights_hash=hash_tensors(module.state_dict()),
        device=backbone.device,
        precision=backbone.precision,
    )


def _stack(models: Sequence[ClusterModel]) -> Heads:
    given = [{name: torch.from_numpy(array) for name, array in m.tensors().items()} for m in models]
    dim, hidden_dim = given[0]["w1"].shape
    bottleneck_dim, n_clusters = given[0]["w3"].shape
    heads = Heads(
        n_heads=len(models),
        dim=dim,
        hidden_dim=hidden_dim,
        bottleneck_dim=bottleneck_dim,
        n_clusters=n_clusters,
    )
    prototypes = torch.stack([t["w3"] for t in given])  # (H, bottleneck, C)
    with torch.no_grad():
        heads.w1.copy_(torch.cat([t["w1"].T for t in given]))
        heads.b1.copy_(torch.cat([t["b1"] for t in given]))
        heads.w2.copy_(torch.stack([t["w2"] for t in given]))
        heads.b2.copy_(torch.stack([t["b2"] for t in given]).unsqueeze(1))
        heads.direction.copy_(prototypes)
        heads.magnitude.copy_(prototypes.norm(dim=1, keepdim=True))
    return heads


def _check(backbone: Backbone, models: Sequence[ClusterModel]) -> None:
    if not models:
        raise TemiError("fine-tuning needs at least one trained model")
    first = models[0]
    if first.dim != backbone.dim:
        raise TemiError(
            f"the models expect {first.dim} features per image, "
            f"but {backbone.name} gives {backbone.dim}"
        )
    for model in models[1:]:
        if model.temperature != first.temperature:
            raise TemiError(
                f"the models differ in temperature: {first.temperature} and {model.temperature}"
            )
        for name, array in model.tensors().items():
            own = first.tensors()[name]
            if array.shape != own.shape:
                raise TemiError(
                    f"the models differ in the shape of {name}: {own.shape} and {array.shape}"
                )
            if name in ("mean", "std") and (array != own).any():
                raise TemiError(f"the models differ in {name}: use models of one training run")
