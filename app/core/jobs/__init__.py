"""Jobs: requests, life cycle, shards, workers, queue, notifications, webhooks."""
