"""Images that a model has refused: kept, gathered into proposed groups, and decided upon.

- `keeping`: stores refused images, within bounds, and starts the next gather job.
- `grouping`: what a gather job reads and writes.
- `decisions`: accepts a proposal as a new or an existing group, or dismisses it.
- `queries`: lists, and deletion.
"""
