"""The arithmetic of a training with the method labels and rbf maps, written with
numpy: what "traintime -peer" compares with. Float32 for the kernel, float64 for the
sums; a block of rows at a time; each product is one call of BLAS, on as many
threads as that takes.

    python3 peer.py FOLDER BITS ANCHORS GAMMA

FOLDER has image.npy, text.npy and labels.npy, 0 or 1, rows being items. Prints
seconds by step as JSON. Reading the files is not counted.
"""

import json
import sys
import time

import numpy as np

BLOCK = 2048


def main(folder, bits, anchors, gamma):
    x = {name: np.load(f"{folder}/{name}.npy") for name in ("image", "text")}
    y = np.load(f"{folder}/labels.npy").astype(np.float64)
    rng = np.random.default_rng(0)
    seconds = dict.fromkeys(("moments", "codes", "kernel", "gram", "solve"), 0.0)
    last = time.perf_counter()

    def lap(step):
        nonlocal last
        now = time.perf_counter()
        seconds[step] += now - last
        last = now

    n = len(y)
    h = np.where(rng.random((n, bits)) < 0.5, -1.0, 1.0)
    for _ in range(3):
        u, _, v = np.linalg.svd(h.T @ y, full_matrices=False)  # bits x labels
        h = np.where(y @ (u @ v).T >= 0, 1.0, -1.0)
    lap("codes")

    projections = {}
    for name, rows in x.items():
        mean = np.zeros(rows.shape[1])
        square = 0.0
        for at in range(0, n, BLOCK):
            b = rows[at : at + BLOCK]
            mean += b.sum(axis=0, dtype=np.float64)
            square += np.einsum("ij,ij->", b, b, dtype=np.float64)
        mean /= n
        sigma = 2 * (square / n - mean @ mean)
        lap("moments")

        centre = mean.astype(np.float32)
        a = rows[rng.choice(n, anchors, replace=False)] - centre
        aa = np.einsum("ij,ij->i", a, a) / np.float32(sigma)
        at_twice = np.ascontiguousarray(a.T) * np.float32(2 / sigma)
        gram = np.zeros((anchors, anchors))
        hphi = np.zeros((bits, anchors))
        for at in range(0, n, BLOCK):
            b = rows[at : at + BLOCK] - centre
            phi = b @ at_twice
            phi -= aa
            phi -= (np.einsum("ij,ij->i", b, b) / np.float32(sigma))[:, None]
            np.exp(phi, out=phi)
            lap("kernel")
            phi = phi.astype(np.float64)
            gram += phi.T @ phi  # numpy calls syrk
            hphi += h[at : at + BLOCK].T @ phi
            lap("gram")
        gram[np.diag_indices(anchors)] += gamma
        projections[name] = np.linalg.solve(gram, hphi.T).T
        lap("solve")

    seconds["total"] = sum(seconds.values())
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
