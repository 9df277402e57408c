"""One module per job kind, and the table of their entry functions."""

# By name, because most of them import torch, which takes seconds and a GB of memory.
ENTRIES = {
    "ingest": "worker.jobs.ingest:run_ingest",
    "cluster": "worker.jobs.cluster:run_cluster",
    "sweep": "worker.jobs.sweep:run_sweep",
    "finetune": "worker.jobs.finetune:run_finetune",
    "predict": "worker.jobs.predict:run_predict",
    "map": "worker.jobs.map:run_map",
    "export": "worker.jobs.export:run_export",
    "gather": "worker.jobs.gather:run_gather",
}
