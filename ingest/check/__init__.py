"""The gate: rules about memory, what was measured, what became of each rule, and reports of it.

`config` reads rules, `inputs` finds the runs, `measure` asks the database for their figures, `baseline` keeps
earlier ones in a file, `judge` puts rules and figures together, `reports` writes the outcome.
"""
