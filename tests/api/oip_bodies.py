"""Requests of the Open Inference Protocol, encoded independently of the service's own code."""

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

BYTES = {"Content-Type": "application/octet-stream"}
HEADER = "Inference-Header-Content-Length"
Json = dict[str, Any]


def images(*files: bytes) -> Json:
    """The input as JSON."""
    data = [base64.b64encode(file).decode() for file in files]
    return {"name": "images", "datatype": "BYTES", "shape": [len(files)], "data": data}


def embeddings(features: npt.NDArray[np.float32]) -> Json:
    shape = list(features.shape)
    return {"name": "embeddings", "datatype": "FP32", "shape": shape, "data": features.tolist()}


def packed(*elements: bytes) -> bytes:
    """A BYTES tensor."""
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


def binary_input(tensor: Json, size: int) -> Json:
    """The same input with its data after the JSON."""
    without = {name: value for name, value in tensor.items() if name != "data"}
    return {**without, "parameters": {"binary_data_size": size}}


def binary(body: Json, *tails: bytes) -> Json:
    """The JSON and the bytes after it, as arguments of `post`."""
    text = json.dumps(body).encode()
    return {"content": b"".join((text, *tails)), "headers": BYTES | {HEADER: str(len(text))}}


def binary_images(*files: bytes, **members: Any) -> Json:
    tail = packed(*files)
    return binary({**members, "inputs": [binary_input(images(*files), len(tail))]}, tail)


def outputs(body: Json) -> dict[str, Any]:
    """The data of each output by name, in its shape."""
    return {
        output["name"]: np.array(output["data"], dtype=object).reshape(output["shape"]).tolist()
        for output in body["outputs"]
    }


def binary_outputs(content: bytes, header: str) -> dict[str, Any]:
    """The same for a response whose tensors follow the JSON."""
    text, tail = content[: int(header)], content[int(header) :]
    found: dict[str, Any] = {}
    for output in json.loads(text)["outputs"]:
        assert "data" not in output
        size = output["parameters"]["binary_data_size"]
        data, tail = tail[:size], tail[size:]
        if output["datatype"] == "BYTES":
            found[output["name"]] = _unpacked(data)
        else:
            dtype = {"INT64": "<i8", "FP32": "<f4"}[output["datatype"]]
            found[output["name"]] = np.frombuffer(data, dtype).reshape(output["shape"]).tolist()
    assert tail == b""
    return found


def _unpacked(data: bytes) -> Sequence[str]:
    found = []
    while data:
        (size,) = struct.unpack("<I", data[:4])
        found.append(data[4 : 4 + size].decode())
        data = data[4 + size :]
    return found
