"""Where settings come from: a file, then the environment, then flags, each later one winning, with the origin kept."""
