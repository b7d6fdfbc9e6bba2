"""Programs for those who change pyff: run from the checkout, not part of the wheel."""
