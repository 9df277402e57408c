"""Deletion of stored files. A file is deleted only if no row refers to it.

- `retention`: locks that a backup holds; while one is valid, no file is deleted.
  `delete_unless_retained` deletes files directly after the commit that deleted their rows.
- `owners`: which rows refer to which files, for every kind of artifact.
- `collector`: deletes old files without an owner. It finds them by listing the storage, and for
  the bytes of deleted images, which others may share, by the rows that `schedule_deletion` wrote.
- `cleanup`: one round of everything that is due, called by the worker every few seconds.
"""
