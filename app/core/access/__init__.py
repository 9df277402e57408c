"""Who may do what, how much of it, and who did what."""
