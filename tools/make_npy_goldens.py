#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/npy: small arrays in the forms that numpy writes."""
import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/npy")
folder.mkdir(parents=True, exist_ok=True)
halves = (np.arange(6).reshape(2, 3) * 0.5)


def write(name, array, version=(1, 0)):
    with open(folder / name, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


write("f4.npy", halves.astype("<f4"))
write("f4_fortran.npy", np.asfortranarray(halves.astype("<f4")))
write("f4_v2.npy", halves.astype("<f4"), (2, 0))
write("f4_v3.npy", halves.astype("<f4"), (3, 0))
write("f2.npy", halves.astype("<f2"))
write("f8_fortran_3d.npy", np.asfortranarray(np.arange(24, dtype="<f8").reshape(2, 3, 4)))
write("i4.npy", np.array([0, 1, -2], "<i4"))
write("i8.npy", np.array([0, 1, -(1 << 40)], "<i8"))
write("b1.npy", np.array([False, True]))
write("empty.npy", np.zeros((0, 3), "<f4"))

# Two that lie about what they hold: a float is missing; more elements than 64 bits count.
(folder / "cut.npy").write_bytes((folder / "f4.npy").read_bytes()[:-4])
with open(folder / "overflow.npy", "wb") as file:
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 62, 4)})
