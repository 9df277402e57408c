"""Online prediction: from the files of a model version to labels for new images.

`client` runs in the API; `process`, `predictor`, `batching` and `models` run in the prediction
process; `ipc` and `messages` connect them. `resolver` maps a model reference to a version.
It imports nothing: each side needs other modules.
"""
