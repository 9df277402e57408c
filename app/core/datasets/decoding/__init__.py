"""Decoding of images that strangers made, within limits of time and memory that hold.

`headers` refuses by the header what would cost too much; `pixels` turns decoded pixels into upright
RGB a strip at a time; `tasks` is what can be asked; `process` is the program that decodes, and
`pool` keeps several of it: one that takes too long is killed, and another takes its place.
"""
