"""The exact route: eigenvectors of the Gram matrix, in float64. Tells seconds, loss and peak memory as JSON.

Usage: low_rank_numpy.py TABLE.f64 ROWS COLUMNS RANK, or with no arguments only numpy's version and BLAS.
"""

import json
import resource
import sys
import time

import numpy as np


def blas():
    try:
        return np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    except Exception:
        return "unknown"


def gram_of(table, block_rows=1024):
    gram = np.zeros((table.shape[1], table.shape[1]))
    for row in range(0, table.shape[0], block_rows):
        block = table[row : row + block_rows]
        gram += block.T @ block
    return gram


def main(path, rows, columns, rank):
    table = np.memmap(path, dtype="<f8", mode="r", shape=(rows, columns))
    start = time.perf_counter()
    gram = gram_of(table)
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    directions = eigenvectors[:, ::-1][:, :rank]
    left = table @ directions
    seconds = time.perf_counter() - start
    return {
        "milliseconds": 1000 * seconds,
        "squaredLoss": float(eigenvalues[: columns - rank].sum()),
        "squaredNorm": float(np.trace(gram)),
        "singularValues": np.sqrt(eigenvalues[::-1][:rank]).tolist(),
        "leftShape": left.shape,
        "peakMebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


if __name__ == "__main__":
    known = {"numpy": np.__version__, "blas": blas()}
    if len(sys.argv) > 1:
        known |= main(sys.argv[1], *map(int, sys.argv[2:]))
    print(json.dumps(known))
