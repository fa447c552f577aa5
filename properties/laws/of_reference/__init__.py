"""The laws that judge the reference, which other checks use as an oracle."""
