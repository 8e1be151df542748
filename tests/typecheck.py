"""The shapes and types of annotations, executed: an int may stand for a float, as everywhere in Python."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
