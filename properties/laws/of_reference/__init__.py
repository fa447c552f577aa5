"""The laws that judge the reference, because it serves as an oracle."""
