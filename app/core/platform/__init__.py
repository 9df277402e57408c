"""The base of all other packages: settings, errors, database, logs, tables, processes."""
