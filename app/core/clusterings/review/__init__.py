"""Review of a clustering by people: questions, answers, purity of the clusters, forecast."""
