"""Issues -> groups that share a cause, with ids that stay the same from day to day.

grouping.py      from result files to groups with names
 +- issues.py        the distinct issues, counted by tasks, and the sample that is grouped
 +- groups.py        texts -> groups: partition.py, by linkage.py, in a space
 `- index.py         the theme of any text; likeness.py: by its words
space.py         vectors -> a space where issues of one cause are near; calibrate.py learns it
ids.py           ids from content, continued from earlier runs
table.py         themes.parquet
"""
