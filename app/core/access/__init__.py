"""API keys, rate limits and quotas."""
