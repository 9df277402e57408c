"""The worker process: claims jobs and shards, supervises their processes, keeps the leases."""
