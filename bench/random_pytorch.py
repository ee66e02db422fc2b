"""Milliseconds of a fill of 10 million values by PyTorch, the second of two: random_pytorch.py uniform_|normal_."""
import sys
import time

import torch

torch.set_num_threads(1)
values = torch.empty(10**7)
for _ in range(2):
    start = time.perf_counter()
    getattr(values, sys.argv[1])()
    elapsed = time.perf_counter() - start
print(1000 * elapsed)
