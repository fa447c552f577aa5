"""The laws that judge the reference itself, because an oracle must be correct."""
