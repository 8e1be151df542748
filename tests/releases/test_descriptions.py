"""Descriptions of estimators are the same in every process: no address of an object is in them."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from leakbound.releases.estimator import Estimator
from leakbound.releases.pretrained_model import FittedEstimator
from leakbound.releases.specs import printed

HERE = __name__


def doubled(x: np.ndarray, times: int = 2) -> np.ndarray:
    return times * x


class Plain:
    """An object that prints itself by its address."""

    def method(self) -> None: ...


def test_a_function_of_the_user_is_printed_by_its_name():
    pipeline = make_pipeline(FunctionTransformer(func=doubled), DecisionTreeClassifier())
    said = f"FunctionTransformer(func={HERE}.doubled)"
    assert said in Estimator(pipeline).description
    assert " at 0x" in repr(pipeline)
    assert said in FittedEstimator(pipeline.fit(np.eye(4), [0, 1, 0, 1])).description


def test_whatever_has_an_address_is_printed_without_it():
    for value, name in [
        (partial(doubled, times=3), f"functools.partial({HERE}.doubled, times=3)"),
        (Plain(), f"{HERE}.Plain"),
        (Plain().method, f"<bound method Plain.method of {HERE}.Plain>"),
        ([doubled, {"by": doubled}], f"[{HERE}.doubled, {{'by': {HERE}.doubled}}]"),
    ]:
        said = " ".join(printed(FunctionTransformer(kw_args={"a": value})).split())
        assert said == f"FunctionTransformer(kw_args={{'a': {name}}})"
    assert " at 0x" not in printed(FunctionTransformer(lambda x: x))


def test_what_has_no_address_is_printed_as_it_is():
    assert printed(DecisionTreeClassifier(max_depth=3)) == "DecisionTreeClassifier(max_depth=3)"
