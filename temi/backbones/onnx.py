"""Computes features with ONNX Runtime; does not load torch."""

import threading
from typing import Any

import numpy as np
import onnxruntime

from temi.backbones.extractor import Features
from temi.backbones.preprocessing import Pixels


class OnnxBackend:
    """Runs the network with ONNX Runtime, with one session for each number of threads.

    One image at a time, so that its features depend neither on the number of cores nor on the
    rest of the batch.
    """

    name = "onnx"

    def __init__(self, graph: bytes) -> None:
        self.graph = graph
        self._lock = threading.Lock()
        self._sessions: dict[int, Any] = {}

    def embed(self, pixels: Pixels, threads: int = 1) -> Features:
        session = self._session(threads)
        found = [session.run(None, {"pixels": pixels[i : i + 1]})[0] for i in range(len(pixels))]
        return np.concatenate(found)

    def _session(self, threads: int) -> Any:
        with self._lock:
            if threads not in self._sessions:
                self._sessions[threads] = _open_session(self.graph, threads)
            return self._sessions[threads]


def _open_session(graph: bytes, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads would take the cores from the decoding threads.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
