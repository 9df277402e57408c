"""The backbones with a short name: the paper's and a few newer ones; does not load torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Library = Literal["timm", "open_clip"]
Layout = Literal["dino", "msn", "mocov3", "mae", "dinov2", "timm", "open_clip", "open_clip_model"]


@dataclass(frozen=True, kw_only=True)
class NamedBackbone:
    """The model and weights of a short name."""

    name: str
    description: str
    library: Library  # builds the architecture
    model: str  # as the library calls it, with timm's tag where timm offers the weights
    pretrained: str | None = None  # open_clip's tag
    options: Mapping[str, Any] = field(default_factory=dict)  # further arguments of the model
    hosted: bool = True  # False: no library offers the weights, so a file is needed
    layout: Layout  # how the tensors are named in a weights file
    dim: int  # features per image
    imagenet_crop: bool = False  # resize 256, crop 224, ImageNet's colors; else the library's
    public_file: str  # the publisher's file name
    publisher: str


def _self_supervised(
    name: str,
    architecture: str,
    model: str,
    dim: int,
    public_file: str,
    *,
    layout: Layout,
    publisher: str,
    data: str = "ImageNet",
    hosted: bool = True,
    options: Mapping[str, Any] | None = None,
) -> NamedBackbone:
    return NamedBackbone(
        name=name,
        description=f"{architecture}, self-supervised on {data} with {publisher}",
        library="timm",
        model=model,
        options=options or {},
        hosted=hosted,
        layout=layout,
        dim=dim,
        imagenet_crop=True,
        public_file=public_file,
        publisher=publisher,
    )


def _dino(
    name: str, architecture: str, model: str, dim: int, file: str, *, hosted: bool = True
) -> NamedBackbone:
    return _self_supervised(
        name, architecture, model, dim, file, layout="dino", publisher="DINO", hosted=hosted
    )


def _msn(name: str, architecture: str, model: str, dim: int, file: str) -> NamedBackbone:
    return _self_supervised(
        name, architecture, model, dim, file, layout="msn", publisher="MSN", hosted=False
    )


def _mocov3(name: str, architecture: str, model: str, dim: int, file: str) -> NamedBackbone:
    return _self_supervised(
        name,
        architecture,
        model,
        dim,
        file,
        layout="mocov3",
        publisher="MoCo v3",
        hosted=False,
        # The ViT-S of MoCo v3 has twice the usual attention heads. The tensors have the same
        # shapes either way, so a wrong number would load without error and give bad features.
        options={"num_heads": 12},
    )


def _mae(name: str, architecture: str, model: str, dim: int, file: str) -> NamedBackbone:
    return _self_supervised(name, architecture, model, dim, file, layout="mae", publisher="MAE")


def _dinov2(name: str, architecture: str, model: str, dim: int) -> NamedBackbone:
    return _self_supervised(
        name,
        architecture,
        model,
        dim,
        f"{name}_pretrain.pth",
        layout="dinov2",
        publisher="DINOv2",
        data="142 million images",
        # Trained at 518 pixels at the end, but evaluated by its authors at 224, which costs a
        # sixth; the position embeddings are then interpolated.
        options={"dynamic_img_size": True},
    )


def _dinov3(name: str, architecture: str, model: str, dim: int) -> NamedBackbone:
    return NamedBackbone(
        name=name,
        description=f"{architecture}, self-supervised on 1.7 billion images with DINOv3",
        library="timm",
        model=model,
        options={"global_pool": "token"},  # timm averages the patches, DINOv3 takes the CLS token
        layout="timm",
        dim=dim,
        public_file="model.safetensors",
        publisher=f"timm/{model} on the Hugging Face Hub",
    )


def _supervised(name: str, architecture: str, tag: str, dim: int) -> NamedBackbone:
    data = "ImageNet-21k and ImageNet" if tag == "augreg_in21k_ft_in1k" else "ImageNet"
    return NamedBackbone(
        name=name,
        description=f"{architecture}, supervised on {data}",
        library="timm",
        model=f"{name}.{tag}",
        layout="timm",
        dim=dim,
        public_file="model.safetensors",
        publisher=f"timm/{name}.{tag} on the Hugging Face Hub",
    )


def _clip(
    name: str, architecture: str, model: str, dim: int, hub: str, *, pretrained: str = "openai"
) -> NamedBackbone:
    trainer = "CLIP by OpenAI" if pretrained == "openai" else model.rpartition("-")[2]
    return NamedBackbone(
        name=name,
        description=f"{architecture}, trained on images and their captions with {trainer}",
        library="open_clip",
        model=model,
        pretrained=pretrained,
        layout="open_clip",
        dim=dim,
        public_file="open_clip_model.safetensors",
        publisher=f"timm/{hub} on the Hugging Face Hub",
    )


_VITS, _VITB, _VITL = "vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"

NAMED_BACKBONES: dict[str, NamedBackbone] = {
    backbone.name: backbone
    for backbone in (
        _dino(
            "dino_resnet50",
            "ResNet-50",
            "resnet50",
            2048,
            "dino_resnet50_pretrain.pth",
            hosted=False,
        ),
        _dino("dino_vits16", "ViT-S/16", f"{_VITS}.dino", 384, "dino_deitsmall16_pretrain.pth"),
        _dino("dino_vitb16", "ViT-B/16", f"{_VITB}.dino", 768, "dino_vitbase16_pretrain.pth"),
        _msn("msn_vits16", "ViT-S/16", _VITS, 384, "vits16_800ep.pth.tar"),
        _msn("msn_vitb16", "ViT-B/16", _VITB, 768, "vitb16_600ep.pth.tar"),
        _msn("msn_vitl16", "ViT-L/16", _VITL, 1024, "vitl16_600ep.pth.tar"),
        _mocov3("mocov3_vits16", "ViT-S/16", _VITS, 384, "vit-s-300ep.pth.tar"),
        _mocov3("mocov3_vitb16", "ViT-B/16", _VITB, 768, "vit-b-300ep.pth.tar"),
        _mae("mae_vitb16", "ViT-B/16", f"{_VITB}.mae", 768, "mae_pretrain_vit_base.pth"),
        _mae("mae_vitl16", "ViT-L/16", f"{_VITL}.mae", 1024, "mae_pretrain_vit_large.pth"),
        _mae(
            "mae_vith14", "ViT-H/14", "vit_huge_patch14_224.mae", 1280, "mae_pretrain_vit_huge.pth"
        ),
        _clip("clip_rn50", "ResNet-50", "RN50", 1024, "resnet50_clip.openai"),
        _clip("clip_vitb16", "ViT-B/16", "ViT-B-16", 512, "vit_base_patch16_clip_224.openai"),
        _clip("clip_vitl14", "ViT-L/14", "ViT-L-14", 768, "vit_large_patch14_clip_224.openai"),
        # The tags are pinned: timm's default weights change between versions, and those of
        # ConvNeXt were trained on more data than the paper's ImageNet.
        _supervised("resnet50", "ResNet-50", "a1_in1k", 2048),
        _supervised("convnext_small", "ConvNeXt-S", "fb_in1k", 768),
        _supervised("convnext_base", "ConvNeXt-B", "fb_in1k", 1024),
        _supervised("convnext_large", "ConvNeXt-L", "fb_in1k", 1536),
        _supervised(_VITS, "ViT-S/16", "augreg_in21k_ft_in1k", 384),
        _supervised(_VITB, "ViT-B/16", "augreg_in21k_ft_in1k", 768),
        _supervised(_VITL, "ViT-L/16", "augreg_in21k_ft_in1k", 1024),
        _dinov2("dinov2_vits14", "ViT-S/14", "vit_small_patch14_dinov2.lvd142m", 384),
        _dinov2("dinov2_vitb14", "ViT-B/14", "vit_base_patch14_dinov2.lvd142m", 768),
        _dinov2("dinov2_vitl14", "ViT-L/14", "vit_large_patch14_dinov2.lvd142m", 1024),
        _dinov3("dinov3_vits16", "ViT-S/16", "vit_small_patch16_dinov3.lvd1689m", 384),
        _dinov3("dinov3_vitb16", "ViT-B/16", "vit_base_patch16_dinov3.lvd1689m", 768),
        _clip(
            "siglip_vitb16",
            "ViT-B/16",
            "ViT-B-16-SigLIP",
            768,
            "ViT-B-16-SigLIP",
            pretrained="webli",
        ),
        _clip(
            "siglip2_vitb16",
            "ViT-B/16",
            "ViT-B-16-SigLIP2",
            768,
            "ViT-B-16-SigLIP2",
            pretrained="webli",
        ),
    )
}
