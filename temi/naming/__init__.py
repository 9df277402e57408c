"""Names for groups of images, from words that apply to a group more than to its neighbors."""
