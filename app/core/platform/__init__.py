"""What every other package stands on: settings, errors, database, logs, tables, processes."""
