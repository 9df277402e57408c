"""The stages that jobs are made of: embedding, neighbors, training, evaluation, registration."""
