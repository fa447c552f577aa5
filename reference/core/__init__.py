"""What all reference models share: records, histories, clocks, errors, and how a history is played."""
