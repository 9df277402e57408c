"""Training of the clustering heads: objectives, heads, optimizer, sampling, training loop."""
