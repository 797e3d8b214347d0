"""Problems whose many rows couple many parameters, and losses with kinks, against CVXPY."""
