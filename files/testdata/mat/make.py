"""Writes scipy.mat and scipy_compressed.mat; README.md says what is in them."""
import numpy as np
import scipy.io
import scipy.sparse

x = 10 * np.arange(5)[:, None] + np.arange(3)
i, j = np.indices((5, 4))
s = {t: x.astype(t) for t in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()}
s |= {"double": x + .25, "single": (x + .25).astype("f4"), "logical": x > 20,
      "sparse": scipy.sparse.csr_matrix(np.where((i + j) % 3 == 0, 10 * i + j + .5, 0)),
      "row": np.arange(3.), "none": np.zeros((0, 3)), "text": "text", "complex": x + 1j, "cube": np.zeros((2, 2, 2)),
      "cell": np.array([1, "two"], dtype=object)}
scipy.io.savemat("scipy.mat", s)
scipy.io.savemat("scipy_compressed.mat", s, do_compression=True)
