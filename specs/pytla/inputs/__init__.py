"""The input of TLC: a module and its configuration, as files and as a run reads them."""
