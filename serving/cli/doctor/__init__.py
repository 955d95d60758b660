"""``answer doctor``: what may be wrong on this machine, and the command that mends it."""
