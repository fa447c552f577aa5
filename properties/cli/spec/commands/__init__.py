"""The commands of `spec`, a file each."""
