"""Decodes untrusted images in processes with hard limits of time and memory.

`headers` refuses images that would cost too much; `pixels` turns decoded pixels into upright RGB in
strips; `tasks` are the requests; `process` is the program that decodes; `client` is the parent's
side of one process; `pool` keeps several, and replaces one that is killed.
"""
