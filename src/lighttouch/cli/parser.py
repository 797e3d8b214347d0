"""The parser: every subcommand, its options, and help that teaches by examples."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

import lighttouch
from lighttouch.estimators.parameters import CLASSIFICATION, LOG_LINK, REGRESSION, purposes
from lighttouch.report.limits import LIMITS
from lighttouch.text import alternatives

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

ABOUT = """\
Train models that must obey rules, and prove that they do.

  lighttouch train people.csv --target income --increasing education_num,capital_gain
  lighttouch predict people.lt new_people.csv -o predictions.csv
  lighttouch check people.lt

Every subcommand explains itself: lighttouch train --help
"""
EXIT_CODES = """\
exit codes: 0 all is well, 1 a rule is broken (check), 2 bad usage or data, 3 the rules contradict
each other, 4 training did not converge (the model is saved), 5 a file cannot be read or written,
6 the rows differ from those of training (predict --strict), 130 interrupted, 143 ended by SIGTERM
"""
TRAIN = """\
Train a model on a table under rules, save it, and write a report that opens in any browser.

Nothing needs tuning. A target with two values makes a classifier, numbers make a regressor, --qid
or --pairs make a ranker. Text columns are categories; gaps are allowed. Press Ctrl-C once to stop
early and keep the best model so far.
"""
TRAIN_EXAMPLES = """\
examples:
  lighttouch train people.csv --target income --increasing education_num,capital_gain
      more education or capital gain never lowers the chance of the second of the two income
      classes; saves people.lt and people.html
  lighttouch train flats.parquet --target price --increasing area --decreasing age \\
      --test more_flats.parquet
      a regressor, its accuracy measured on another file
  lighttouch train flats.csv --target price --rules rules.toml --holdout 0.2 -o flats.lt
      any rule from a file, accuracy on a fifth of the rows that training does not see
  lighttouch train claims.csv --target claims --loss poisson --exposure years --increasing km
      the mean number of claims per year
  lighttouch train flats.csv --target price --quantile 0.1,0.5,0.9 --increasing area
      three columns of predictions that never cross
  lighttouch train wines.csv --target grade --ordinal poor,fair,good --increasing alcohol
      ordered classes
  lighttouch train clicks.csv --target stars --qid query --increasing relevance
      a ranker; only rows with the same query are compared
  lighttouch train pairs.csv --pairs --increasing relevance
      a ranker from columns better_relevance, worse_relevance, ...

rules.toml:
  increasing = ["area"]
  decreasing = ["age"]
  [[rule]]
  kind = "EdgeworthTrust"   # or Convex, Concave, Unimodal, SlopeBound, Dominates, RangeDominates,
  main = "rating"           # JointlyMonotonic, Supermodular, Submodular, TrapezoidTrust,
  conditional = "n_reviews" # CategoryOrder: see docs/command_line.md

Rules about how much predictions change (Convex, Concave, SlopeBound, EdgeworthTrust,
RangeDominates, Supermodular, Submodular) hold on the log-odds of a classifier, and on the logarithm
of the mean with --loss poisson, gamma or tweedie. All others hold on the probability or the mean as
well.
"""
PREDICT_EXAMPLES = """\
examples:
  lighttouch predict people.lt new.csv                           to the screen
  lighttouch predict people.lt new.csv.gz -o out.csv.gz          compressed; files of any size
  lighttouch predict people.lt new.parquet -o out.parquet --keep id
  zcat new.csv.gz | lighttouch predict people.lt - | head       through pipes
  lighttouch predict people.lt new.csv -o out.csv --strict       nothing, if the rows have changed

A classifier writes the class and the probability of its second class; a regressor or ranker writes
numbers. Numbers are written with all their digits: reading them back gives the same bits as
predicting in Python. Text that a spreadsheet would run as a formula (it begins with = + - @) gets
an apostrophe in front, unless --raw is given.
"""
CHECK_EXAMPLES = """\
examples:
  lighttouch check people.lt                  every rule, recomputed from the saved parameters
  lighttouch check people.lt people.csv       also that predictions near these rows keep them
  lighttouch check people.lt && deploy        the exit code is 0 if every rule holds, 1 if not
"""
INFO_EXAMPLES = """\
examples:
  lighttouch info people.lt                   on one screen
  lighttouch info people.lt --json            everything, for programs
"""
PLAN_EXAMPLES = """\
How many iterations and constraint checks the theorems of the paper ask for, with which step size
and with how many constraints per iteration.

examples:
  lighttouch plan --constraints 24576 --diameter 10 --objective-gradient 1 \\
      --constraint-gradient 2 --penalty 1 --epsilon 0.01
  lighttouch plan --constraints 1000 --diameter 1 --objective-gradient 1 --constraint-gradient 1 \\
      --boundary-gradient 0.5 --epsilon 0.1 --strong-convexity 0.1
"""
WARMUP_EXAMPLES = """\
examples:
  lighttouch warmup              a minute once; the machine code is kept for every later run
  lighttouch warmup --clean      after an update: what older versions left is deleted first

It is kept beside the package, or in ~/.cache/lighttouch where that cannot be written, or in
$LIGHTTOUCH_CACHE_DIR.
"""


TABLE = "CSV or Parquet file, .gz, .bz2, .xz, .zip and .zst too; - is standard input"
TABLES = f"{TABLE}; a folder, or a pattern in quotes, such as 'loans/*.parquet', for several"


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lighttouch", description=ABOUT, epilog=EXIT_CODES, formatter_class=_Help
    )
    parser.add_argument(
        "--version", action="version", version=f"lighttouch {lighttouch.__version__}"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    _train(commands)
    _predict(commands)
    _check(commands)
    _info(commands)
    _plan(commands)
    _reproduce(commands)
    _warmup(commands)
    return parser


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _fraction(text: str) -> float:
    value = float(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text}")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"must lie from 0 to 1, got {text}")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text}")
    return value


def _levels(text: str) -> list[float]:
    return [_fraction(part) for part in text.split(",") if part.strip()]


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, got {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value


def _count_or_none(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, got {text}")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to {2**32 - 1}, got {text}"
        )
    return value


def _command(
    commands: Commands, name: str, summary: str, examples: str, about: str | None = None
) -> argparse.ArgumentParser:
    text = about or summary[0].upper() + summary[1:] + "."
    parser = commands.add_parser(
        name, help=summary, description=text, epilog=examples, formatter_class=_Help
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error, and what is logged",
    )
    _flag(parser, "--json", "print one JSON object instead of sentences")
    _flag(parser, "--quiet", "print errors and warnings only")
    return parser


def _columns(parser: argparse._ActionsContainer, option: str, about: str) -> None:
    """An option whose value is a list of column names; it may repeat."""
    parser.add_argument(option, metavar="A,B", type=names, action="extend", default=[], help=about)


def _dialect(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how the CSV is written")
    group.add_argument(
        "--separator",
        metavar="S",
        help="what separates cells (found by itself: comma, semicolon or tab)",
    )
    group.add_argument(
        "--decimal",
        metavar="D",
        default=".",
        choices=(".", ","),
        help="decimal point or comma: . or ,",
    )
    group.add_argument(
        "--missing",
        metavar="TEXT",
        action="append",
        default=[],
        help="a cell with this text is missing, such as '?'; may repeat",
    )
    group.add_argument("--encoding", default="utf-8", help="such as latin-1 (default: utf-8)")


def _flag(parser: argparse._ActionsContainer, option: str, about: str) -> None:
    parser.add_argument(option, action="store_true", help=about)


def _train(commands: Commands) -> None:
    about = "train a model on a table under rules, save it and write a report"
    parser = _command(commands, "train", about, TRAIN_EXAMPLES, TRAIN)
    parser.add_argument("data", type=Path, help=TABLES)
    parser.add_argument("--target", metavar="COLUMN", help="what to predict")
    tasks = ("auto", "classification", "regression", "ranking")
    parser.add_argument("--task", choices=tasks, default="auto")
    rules = parser.add_argument_group("rules")
    _columns(rules, "--increasing", "the prediction never falls as these rise")
    _columns(rules, "--decreasing", "the prediction never rises as these rise")
    rules.add_argument("--rules", metavar="FILE", type=Path, help="TOML file with any rules")
    columns = parser.add_argument_group("columns")
    _columns(columns, "--drop", "columns to leave out")
    _columns(columns, "--categorical", "treat as categories although they look like numbers")
    same = "rank: only rows with the same value here are compared"
    columns.add_argument("--qid", metavar="COLUMN", help=same)
    _flag(columns, "--pairs", "rank: every row is a pair, in columns better_NAME and worse_NAME")
    observed = f"how long each row was observed, with --loss {alternatives(LOG_LINK)}"
    columns.add_argument("--exposure", metavar="COLUMN", help=observed)
    _train_predictions(parser.add_argument_group("what is predicted"))
    _train_output(parser.add_argument_group("output"))
    _train_settings(parser.add_argument_group("training"))
    _engine(parser)
    _dialect(parser)


def _engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files larger than memory")
    engine = "what reads several files: this process (none, the default), processes or ray"
    group.add_argument(
        "--engine", choices=("none", "processes", "ray"), default="none", help=engine
    )
    workers = "how many processes, or tasks at a time on Ray (default: one per core)"
    group.add_argument("--workers", metavar="N", type=_count, help=workers)


def _train_predictions(group: argparse._ArgumentGroup) -> None:
    classifiers = purposes(CLASSIFICATION, "logistic")
    losses = f"{purposes(REGRESSION, 'squared')}; of a classifier {classifiers}"
    group.add_argument("--loss", metavar="NAME", help=losses)
    levels = "levels of --loss quantile, predicted in columns that never cross, such as 0.1,0.5,0.9"
    group.add_argument("--quantile", metavar="Q,Q", type=_levels, help=levels)
    ordered = "the target's classes are ordered: as they sort, or as they are listed here"
    group.add_argument("--ordinal", metavar="A,B", type=names, nargs="?", const=[], help=ordered)
    for name, word in (("--output-min", "below"), ("--output-max", "above")):
        group.add_argument(name, metavar="Y", type=float, help=f"no prediction is {word} this")


def _train_output(output: argparse._ArgumentGroup) -> None:
    model = "where to save the model (default: the data's name with .lt)"
    output.add_argument("-o", "--output", metavar="MODEL", type=Path, help=model)
    report = "where to write the report (default: beside the model, .html)"
    output.add_argument("--report", metavar="HTML", type=Path, help=report)
    _flag(output, "--no-report", "write no report")
    _columns(output, "--by", "measure accuracy for each value of these columns (dropped ones too)")
    again = (
        "how long models trained again for the report may take in all: one without each rule, and "
        f"{LIMITS.folds} on parts of the rows (default: {LIMITS.seconds:g})"
    )
    output.add_argument("--report-time", metavar="SECONDS", type=_seconds, help=again)
    _flag(output, "--quick", "train no models again for the report")
    _flag(output, "--overwrite", "replace files that exist")


def _train_settings(training: argparse._ArgumentGroup) -> None:
    linear = "a linear model (number columns only) instead of curves and lattices"
    _flag(training, "--linear", linear)
    trees = (
        "how many small trees follow what curves and lattices leave over, 0 for none (default: as "
        "many as held-out rows ask for)"
    )
    training.add_argument("--trees", metavar="COUNT", type=_count_or_none, help=trees)
    test = "measure accuracy on this file too"
    training.add_argument("--test", metavar="FILE", type=Path, help=test)
    holdout = "keep this share of the rows from training and measure accuracy on them"
    training.add_argument("--holdout", metavar="SHARE", type=_fraction, help=holdout)
    limit = "stop training after so long, with the best model so far"
    training.add_argument("--time-limit", metavar="SECONDS", type=_seconds, help=limit)
    earlier = "start from this model: its curves, lattices and parameters"
    training.add_argument("--from", dest="earlier", metavar="MODEL", type=Path, help=earlier)
    kept = "keep training in this file: after a crash the same command goes on from it"
    training.add_argument("--checkpoint", metavar="FILE", type=Path, help=kept)
    seed = "what is random is drawn from this (default: 0)"
    training.add_argument("--seed", type=_seed, default=0, help=seed)


def _predict(commands: Commands) -> None:
    about = "predict for every row of a table of any size"
    parser = _command(commands, "predict", about, PREDICT_EXAMPLES)
    parser.add_argument("model", type=Path, help="a model that train saved")
    parser.add_argument("data", type=Path, help=TABLES)
    output = "CSV, compressed CSV or Parquet (default: CSV to the screen)"
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=output)
    _columns(parser, "--keep", "columns of the data to write beside the prediction")
    _flag(parser, "--raw", "write text as it is, formulas too")
    _flag(parser, "--overwrite", "replace the output if it exists")
    drift = parser.add_argument_group("drift: how the rows differ from those of training")
    _flag(drift, "--strict", "write nothing and exit with 6 if they differ by more than this:")
    psi = "the largest population stability index (default: 0.25)"
    drift.add_argument("--max-psi", metavar="PSI", type=_positive, default=0.25, help=psi)
    unseen = "the largest share of rows with a category that training did not see (default: 0.01)"
    drift.add_argument("--max-unseen", metavar="SHARE", type=_share, default=0.01, help=unseen)
    _engine(parser)
    outside = "the largest share of cells of a column outside the training range (default: 0.05)"
    drift.add_argument("--max-outside", metavar="SHARE", type=_share, default=0.05, help=outside)
    _dialect(parser)


def _check(commands: Commands) -> None:
    parser = _command(commands, "check", "do the rules hold? The exit code says so", CHECK_EXAMPLES)
    parser.add_argument("model", type=Path, help="a model that train saved")
    data = "a table whose predictions are checked as well"
    parser.add_argument("data", type=Path, nargs="?", help=data)
    _dialect(parser)


def _info(commands: Commands) -> None:
    about = "where a model comes from: version, date, data, rules, columns"
    parser = _command(commands, "info", about, INFO_EXAMPLES)
    parser.add_argument("model", type=Path, help="a model that train saved")


PLAN_NUMBERS = (  # option, letter of the paper, whether it is required, what it is
    ("--diameter", "D_W", True, "of the domain"),
    ("--objective-gradient", "G_F", True, "largest norm of a stochastic gradient of the loss"),
    ("--constraint-gradient", "G_G", True, "largest norm of a gradient of a constraint"),
    ("--constraint-lipschitz", "L_G", False, "of the constraints (default: G_G)"),
    ("--objective-lipschitz", "L_F", False, "of the objective (default: G_F)"),
    ("--boundary-gradient", "RHO", False, "least slope of max g on the boundary; gives GAMMA"),
    ("--penalty", "GAMMA", False, "instead of, or above, what RHO gives"),
    ("--strong-convexity", "LAMBDA", False, "needed for MidTouch"),
    ("--epsilon", "EPSILON", True, "the accuracy wanted"),
)


def _plan(commands: Commands) -> None:
    about = "what the theory asks for: iterations, batch, step size, constraint checks"
    parser = _command(commands, "plan", about, PLAN_EXAMPLES)
    count = "how many constraints there are"
    parser.add_argument("--constraints", metavar="M", type=int, required=True, help=count)
    for option, letter, required, meaning in PLAN_NUMBERS:
        parser.add_argument(option, metavar=letter, type=float, required=required, help=meaning)
    chance = "probability with which the plan may fail (default: 0.05)"
    parser.add_argument(
        "--failure-probability", metavar="DELTA", type=float, default=0.05, help=chance
    )
    parser.add_argument("--algorithm", choices=("all", "full", "light", "mid"), default="all")


def _reproduce(commands: Commands) -> None:
    about = "run the paper's experiments and judge its claims"
    example = "example:\n  lighttouch reproduce --scale small\n"
    parser = _command(commands, "reproduce", about, example)
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    names = ("figure1", "figure2", "figure3", "tables")
    only = "figure1, figure2, figure3 or tables"
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help=only)
    parser.add_argument("--data", help="your own pairs: one file, or two joined by a comma")
    output, folder = Path("results/reproduce"), "folder (default: results/reproduce)"
    parser.add_argument("-o", "--output", type=Path, default=output, help=folder)
    parser.add_argument("--seeds", type=int, help="permutations to average over")
    parser.add_argument("--workers", type=int, help="processes for runs whose time is not measured")
    _flag(parser, "--fresh", "measure again what was measured before")


def _warmup(commands: Commands) -> None:
    about = "compile what training needs, so that the first model is not slow"
    parser = _command(commands, "warmup", about, WARMUP_EXAMPLES)
    _flag(parser, "--clean", "first delete machine code of older versions of lighttouch")
