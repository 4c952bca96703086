"""Vectors of texts over OpenAI's protocol: `EmbeddingServer` in `server.py` is what is deployed.

engines (bundled, torch) -> serve/embedder.py -> serve/batcher.py -> texts -> server -> wire
"""
