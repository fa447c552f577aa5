"""How the operators of `spark_impl` are asked about cohorts of histories: one module an operator."""
