def serve(model=""): raise NotImplementedError
