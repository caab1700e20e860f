"""The experiments of the paper, through public names only."""
