"""How neighbors are searched: exactly, or in the cells near a row."""
