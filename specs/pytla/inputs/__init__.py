"""What TLC is to check: a module and its configuration, as files and as a run has them."""
