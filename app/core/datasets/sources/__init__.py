"""Sources of a dataset's images: archives, folders, buckets, URLs, manifests."""
