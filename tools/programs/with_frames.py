"""The extra `frames`: a table on disk, trained and checked by the command line."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from lighttouch.cli import main

rng = np.random.default_rng(0)
table = pd.DataFrame({"rating": rng.random(200), "price": rng.random(200)})
table["liked"] = table["rating"] - table["price"] + 0.1 * rng.normal(size=200)
with tempfile.TemporaryDirectory() as folder:
    data, model = Path(folder) / "flats.parquet", Path(folder) / "flats.lt"
    table.to_parquet(data)
    rules = ["--increasing", "rating", "--decreasing", "price"]
    trained = main(["train", str(data), "--target", "liked", *rules, "-o", str(model), "--quiet"])
    assert trained == 0 and main(["check", str(model), str(data), "--quiet"]) == 0
print(f"pandas {pd.__version__}, trained from Parquet and checked")
