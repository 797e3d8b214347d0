"""The extra `plot`: a picture of an isotonic fit."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import lighttouch as lt

noisy = np.linspace(0, 1, 50) + 0.2 * np.sin(np.arange(50))
fitted = lt.project(noisy, lt.ordering(50))
plt.plot(noisy, ".")
plt.plot(fitted.w)
plt.savefig("fit.png")
print(f"matplotlib {matplotlib.__version__}, a picture by {fitted.method}")
