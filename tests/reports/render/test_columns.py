from leakbound.reports.render.text import WIDTH, columns


def test_cells_stand_below_their_heading():
    rows = [{"attack": "lira", "auc": "0.91", "note": "strong"}, {"attack": "confidence", "auc": "-", "note": "weak"}]
    assert columns(rows).splitlines() == [
        "attack      auc   note",
        "lira        0.91  strong",
        "confidence  -     weak",
    ]


def test_no_rows_are_no_table():
    assert columns([]) == ""


def test_the_last_column_is_wrapped_below_itself():
    text = "one two three four five six seven eight nine ten " * 6
    lines = columns([{"name": "a" * 30, "text": text.strip()}]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) > 3
    assert all(line.startswith(" " * 32) and not line[32].isspace() for line in lines[2:])
    assert " ".join(line[32:] for line in lines[1:]) == text.strip()


def test_an_empty_last_cell_leaves_no_blanks():
    assert columns([{"a": "x", "b": ""}]) == "a  b\nx"


def test_the_widest_columns_give_way():
    words = " ".join(["word"] * 30)
    lines = columns([{"a": "short", "b": words, "c": words}, {"a": "x", "b": "y", "c": "z"}]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[1].startswith("short  word")
    assert sum(line.count("word") for line in lines) == 60
    assert lines[-1].split() == ["x", "y", "z"]
