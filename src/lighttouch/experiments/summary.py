"""The summary: every claim, its number, and plainly whether it holds."""

from __future__ import annotations

from collections.abc import Sequence

from lighttouch.experiments.claims import Claim, Verdict, shown, wanted
from lighttouch.experiments.setting import Measured


def summary(
    scale: str,
    verdicts: dict[str, list[Verdict]],
    measured: dict[str, Measured],
    seconds: float,
    notes: Sequence[str],
) -> str:
    """Markdown: one table of claims, one of what the searches chose, one of exponents, as far as
    they were measured.
    """
    parts = [
        f"# The paper's experiments, {scale} scale",
        "",
        f"This call took {seconds:.0f} s; what was measured before is read.",
        "",
    ]
    parts += _claims(verdicts)
    failing = [verdict for group in verdicts.values() for verdict in group if not verdict.holds]
    if failing:
        parts += [
            "",
            "Does not reproduce here:",
            *(f"- {verdict.claim.says}: {shown(verdict.measured)}" for verdict in failing),
        ]
    if scale == "small":
        parts += [
            "",
            (
                "At the small scale the problem is far smaller than the paper's: its claims "
                "are about the full scale."
            ),
        ]
    if "figure3" in measured:
        parts += ["", *_seconds(measured["figure3"]), "", *_searches(measured["figure3"])]
    if "tables" in measured:
        parts += ["", *_exponents(measured["tables"])]
    return "\n".join([*parts, *(f"\nNote: {note}." for note in notes)])


def _claims(verdicts: dict[str, list[Verdict]]) -> list[str]:
    rows = ["| experiment | claim | paper | measured | |", "|---|---|---|---|---|"]
    for name, group in verdicts.items():
        for verdict in group:
            cells = (
                name,
                _sentence(verdict.claim),
                wanted(verdict.claim),
                _number(verdict),
                _word(verdict),
            )
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def _sentence(claim: Claim) -> str:
    return claim.says.replace("|", "\\|")


def _number(verdict: Verdict) -> str:
    return shown(verdict.measured) + (verdict.claim.unit if verdict.measured is not None else "")


def _word(verdict: Verdict) -> str:
    return "" if wanted(verdict.claim) == "-" else verdict.words


def _seconds(figure3: Measured) -> list[str]:
    rows = ["| line | seconds to 5% | to 2% | to 1% |", "|---|---|---|---|"]
    for line in dict.fromkeys(row["line"] for row in figure3.tables["curves"]):
        cells = [
            shown(figure3.findings.get(f"{line} seconds to {share}"))
            for share in ("5%", "2%", "1%")
        ]
        rows.append(f"| {line} | {' | '.join(cells)} |")
    return rows


def _searches(figure3: Measured) -> list[str]:
    rows = ["| search | values (objective) | chosen |", "|---|---|---|"]
    table = figure3.tables["searches"]
    for key in dict.fromkeys((row["line"], row["parameter"]) for row in table):
        group = [row for row in table if (row["line"], row["parameter"]) == key]
        tried = ", ".join(f"{row['value']:g} ({row['objective']:.4f})" for row in group)
        chosen = next(row["value"] for row in group if row["chosen"])
        rows.append(f"| {key[0]} {key[1]} | {tried} | {chosen:g} |")
    return rows


def _exponents(tables: Measured) -> list[str]:
    """The theory's column is the same fit through the table's formula at the same m and epsilon."""
    names = (
        "table",
        "algorithm",
        "cost",
        "power of m: measured",
        "formula",
        "power of 1/epsilon: measured",
        "formula",
    )
    rows = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for fit in tables.tables["exponents"]:
        cells = [
            shown(fit[f"{source} power of {power}"])
            for power in ("m", "1/epsilon")
            for source in ("measured", "theory")
        ]
        rows.append(
            f"| {fit['table']} | {fit['algorithm']} | {fit['cost']} | {' | '.join(cells)} |"
        )
    return rows
