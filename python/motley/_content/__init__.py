"""Files by their content: from where a run's files come, where a machine keeps them, and who reads them before all are there."""
