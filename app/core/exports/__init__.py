"""Labels as files for other programs: one module a format, each streams row after row."""
