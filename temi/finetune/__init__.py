"""Fine-tuning: backbone and trained heads together, on the images themselves.

Only heads that are already trained lead a backbone anywhere: together with heads that start at
random it gets worse, not better. So the start is a set of trained models, never a fresh one.
"""

from temi.finetune.config import FinetuneConfig
from temi.finetune.network import backbone_tensors, with_weights
from temi.finetune.tuner import Finetuner, FinetuneReport

__all__ = ["FinetuneConfig", "FinetuneReport", "Finetuner", "backbone_tensors", "with_weights"]
