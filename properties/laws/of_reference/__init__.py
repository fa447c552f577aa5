"""The laws that judge the reference itself: a wrong oracle is worth nothing."""
