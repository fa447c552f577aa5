"""Parts that all reference models share: records, histories, clocks, errors, and the play of a history."""
