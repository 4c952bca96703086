"""What the report calls, in English, the things that other stations count by a key; see `words.py`.

A key is `group_name`: `reason` of a rejection, `filter` that left a record out, `flag` of a record
or an answer, `station` of the run, kind of `private` value.
"""

from __future__ import annotations

NAMES = {
    "reason_empty": "Nothing to read in it",
    "reason_bad_json": "Broken JSON",
    "reason_not_a_record": "JSON that is no record",
    "reason_too_long": "Too long",
    "reason_truncated": "The file ends too early",
    "reason_bad_csv": "Broken CSV row",
    "reason_binary": "Not a text file",
    "reason_unreadable": "Could not be opened or read",
    "filter_since": "Before --since",
    "filter_until": "After --until",
    "filter_skip": "Matches a skip pattern",
    "filter_sample": "Not in the sample",
    "flag_bad_bytes": "Bytes that are no text in its encoding",
    "flag_nul": "NUL characters",
    "flag_nan": "NaN or Infinity",
    "flag_duplicate_key": "A key twice in one object",
    "flag_lone_surrogate": "Half a character",
    "flag_ansi": "Colour codes of a terminal",
    "flag_zero_width": "Invisible characters",
    "flag_control": "Control characters",
    "flag_bad_json": "Looks like JSON and is not",
    "flag_bad_time": "A time that could not be read",
    "flag_unmapped": "No text field was found",
    "flag_bare_quote": "A quotation mark that does not close",
    "flag_extra_cells": "More cells than columns",
    "flag_missing_cells": "Fewer cells than columns",
    "flag_quote_not_found": "The quote given is not in the text",
    "flag_severity_unknown": "The severity given is none of the five",
    "flag_answer_shortened": "An answer too long to keep whole",
    "station_plan": "Looking at the inputs",
    "station_start_ray": "Starting the workers",
    "station_sample": "Drawing the sample",
    "station_ask": "Reading, cleaning and asking",
    "station_join": "Joining equal records",
    "station_themes": "Grouping and naming problems",
    "station_results": "Writing the results",
    "station_account": "Balancing the account",
    "station_report": "Making the report",
    "private_email": "E-mail addresses",
    "private_phone": "Phone numbers",
    "private_id_card": "Identity numbers",
    "private_card": "Bank cards",
    "private_secret": "Keys, tokens and passwords",
    "private_ip": "IP addresses",
}
