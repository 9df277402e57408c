"""Frozen backbones: a picture in, a feature vector out."""

from temi.backbones.base import Backbone
from temi.backbones.load import load_backbone
from temi.device import resolve_device
from temi.preprocessing import Preprocessing

__all__ = ["Backbone", "Preprocessing", "load_backbone", "resolve_device"]
