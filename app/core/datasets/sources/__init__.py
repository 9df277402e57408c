"""Where the images of a dataset come from: archives, folders, object stores, addresses, lists."""
