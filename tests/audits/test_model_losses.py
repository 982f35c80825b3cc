"""One loss per record from every kind of model: the right values; nothing is guessed, lost or left
behind.
"""

import copy
import subprocess
import sys
import weakref
from collections import UserDict
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from scipy.special import logsumexp, softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.nn import functional
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from paperlib.audits import losses
from paperlib.models import binary_margin_loss
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from tests.refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 50)
VALUES = RNG.normal(size=(50, 2)).astype(np.float32)


def network(outputs=3):
    torch.manual_seed(0)
    layers = (
        torch.nn.Linear(6, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.Dropout(),
        torch.nn.Linear(16, outputs),
    )
    return torch.nn.Sequential(*layers)


def outputs_of(model, x=X):
    """Outputs in evaluation mode, computed apart."""
    modes = model.training
    with torch.no_grad():
        outputs = model.eval()(torch.from_numpy(x)).double().numpy()
    model.train(modes)
    return outputs


def loader(x=X, y=Y, **options):
    return DataLoader(
        TensorDataset(torch.as_tensor(x), torch.as_tensor(y)), **{"batch_size": 8, **options}
    )


def cross_entropy_of(logits, y=Y):
    return logsumexp(logits, axis=1) - logits[np.arange(len(y)), y]


# Torch modules


def test_logits_and_class_numbers_give_the_cross_entropy_exactly():
    model = network()
    values = losses(model, loader())
    assert values.shape == (50,)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, cross_entropy_of(outputs_of(model)), rtol=1e-6)
    model = torch.nn.Identity()
    values = losses(model, (torch.tensor([[1000.0, 0.0], [0.0, 60.0]]), torch.tensor([1, 1])))
    assert values[0] == 1000
    assert values[1] == pytest.approx(np.exp(-60.0), rel=1e-9, abs=1e-16)


def test_floating_targets_give_the_squared_error_and_a_loss_of_the_user_gets_outputs_and_targets():
    """Also where all are 0 or 1 but one."""
    model = network(outputs=2)
    for targets in (
        VALUES,
        *(2.5 * (np.arange(100) == place).reshape(50, 2) for place in (0, 40, 99)),
    ):
        expected = ((outputs_of(model) - targets) ** 2).mean(axis=1)
        values = losses(model, loader(y=targets.astype(np.float32)))
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-8)
    model = network(outputs=1)
    y = Y % 2
    values = losses(model, (X, y), loss=binary_margin_loss, batch_size=16)
    np.testing.assert_allclose(values, (1 - 2 * y) * outputs_of(model)[:, 0], rtol=1e-5)
    said = r"loss: expected one loss per record, shape \(8,\), got shape \(\)"
    refused(said, losses, network(), loader(), loss=functional.cross_entropy)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(torch.from_numpy(X), torch.from_numpy(Y), strict=True))


@pytest.mark.parametrize(
    "data",
    [
        (X, Y),
        DataLoader(Stream(), batch_size=8),
        (X.astype(np.float64), Y),
        (pd.DataFrame(X), pd.Series(Y)),
        (torch.from_numpy(X), torch.from_numpy(Y)),
        TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
        loader(batch_size=50),
        iter(loader(batch_size=7)),
        DataLoader(
            Subset(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), range(50)), batch_size=9
        ),
    ],
    ids=[
        "arrays",
        "stream",
        "doubles",
        "tables",
        "tensors",
        "dataset",
        "loader",
        "batches",
        "subset",
    ],
)
def test_every_form_of_the_data_gives_the_same_losses(data):
    model = network()
    np.testing.assert_allclose(losses(model, data), losses(model, loader()), rtol=1e-5)
    for size in (1, 7, 400) if isinstance(data, tuple) else ():
        np.testing.assert_allclose(
            losses(model, data, batch_size=size), losses(model, data), rtol=1e-5
        )


def bert():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    return transformers.BertForSequenceClassification(config)


def test_dictionaries_with_labels_are_batches_of_a_classifier_of_texts_and_of_no_language_model():
    model = bert()
    tokens, labels = RNG.integers(1, 30, (9, 5)), RNG.integers(0, 2, 9)
    rows = [{"input_ids": one, "labels": label} for one, label in zip(tokens, labels, strict=True)]
    values = losses(model, DataLoader(rows, batch_size=4))
    with torch.no_grad():
        logits = model.eval()(input_ids=torch.from_numpy(tokens)).logits.double().numpy()
    np.testing.assert_allclose(values, cross_entropy_of(logits, labels), rtol=1e-5)
    whole = UserDict(input_ids=tokens, labels=labels)
    np.testing.assert_allclose(losses(model, whole, batch_size=2), values, rtol=1e-5)
    refused(
        "got BertForSequenceClassification; give a classifier alone",
        losses,
        (bert(), TOKENIZER),
        TEXTS,
    )
    tokens = torch.tensor([TOKENIZER(TEXTS[0])["input_ids"]])
    given = {"input_ids": tokens, "labels": tokens}
    refused(r"losses\(\(model, tokenizer\), texts\) takes texts", losses, LANGUAGE, given)


def run_on(model, device, fails):
    """Losses, or a refusal in the midst of them."""
    with pytest.raises(ValueError, match="labels") if fails else nullcontext():
        losses(model, (X, Y + fails), device=device)


@pytest.mark.parametrize("fails", [False, True])
def test_a_module_is_left_as_it_was(fails):
    model = network()
    model[1].eval()
    model[3].weight.grad = torch.ones_like(model[3].weight)
    before = [part.training for part in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    run_on(model, "cpu", fails)
    assert [part.training for part in model.modules()] == before
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.is_grad_enabled()
    assert all(one.requires_grad and one.device.type == "cpu" for one in model.parameters())
    assert bool((model[3].weight.grad == 1).all())


class Keeping(torch.nn.Linear):
    """Keeps a tensor of its first call, as rotary embeddings do."""

    kept = None

    def forward(self, x):
        self.kept = torch.ones(3) if self.kept is None else self.kept
        return super().forward(x) * self.kept


def test_what_a_module_keeps_can_be_trained_with():
    model = Keeping(6, 3)
    losses(model, (X, Y))
    model(torch.from_numpy(X)).sum().backward()
    assert model.weight.grad is not None


class Moving(torch.nn.Linear):
    """Notes every device it is moved to; "meta" stands for a machine's accelerator."""

    def to(self, device):
        self.moves = [*getattr(self, "moves", []), str(device)]
        return self


@pytest.mark.parametrize("fails", [False, True])
def test_a_module_goes_to_the_device_and_back(monkeypatch, fails):
    model = Moving(6, 3)
    networks = "paperlib.audits.record_losses.network_losses"
    monkeypatch.setattr(f"{networks}.default_device", torch.device)
    monkeypatch.setattr(f"{networks}.moved", lambda values, device: values)
    run_on(model, "meta", fails)
    assert model.moves == ["meta", "cpu"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_losses_on_a_gpu_are_those_on_the_processor():
    model = network()
    values = losses(model, loader(), device="cuda")
    np.testing.assert_allclose(values, losses(model, loader()), rtol=1e-3, atol=1e-4)
    assert {one.device.type for one in model.parameters()} == {"cpu"}


class Unsteady(torch.nn.Module):
    """Keeps a part in training mode, or has dropout that is always on."""

    def __init__(self, dropout):
        super().__init__()
        self.parts = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.BatchNorm1d(3))
        self.dropout = dropout

    def forward(self, x):
        if not self.dropout:
            self.parts.train()
        return torch.nn.functional.dropout(self.parts(x), 0.5, training=self.dropout)


@pytest.mark.parametrize("dropout", [True, False])
def test_a_forward_that_stays_in_training_mode_is_refused(dropout):
    """A record would have the loss of its batch, or of its draw."""
    refused("model: losses change from call to call", losses, Unsteady(dropout), (X, Y))


def test_probabilities_are_refused_but_log_probabilities_are_logits():
    model = torch.nn.Sequential(network(), torch.nn.Softmax(dim=1))
    said = "sums to 1, so it is probabilities; return the logits"
    for count, batch_size in ((50, 1), (50, 10), (50, 50), (5, 1)):
        refused(said, losses, model, (X[:count], Y[:count]), batch_size=batch_size)
    expected = cross_entropy_of(outputs_of(model[0]))
    own = losses(model, (X, Y), loss=lambda p, y: -p[torch.arange(len(y)), y].log())
    np.testing.assert_allclose(own, expected, rtol=1e-4)
    model[1] = torch.nn.LogSoftmax(dim=1)
    np.testing.assert_allclose(losses(model, (X, Y)), expected, rtol=1e-5)
    model[1] = torch.nn.Sigmoid()
    refused("every output is between 0 and 1, so it is probabilities", losses, model, (X, Y))
    assert losses(torch.nn.Sigmoid(), (X[:5], Y[:5])).size == 5, "of few records it may be chance"
    logits = np.array(
        [[1.0, 0.0], [3.0, -1.0]], dtype=np.float32
    )  # a batch that sums to 1 by chance
    values = losses(torch.nn.Identity(), (logits, np.array([0, 1])), batch_size=1)
    np.testing.assert_allclose(values, cross_entropy_of(logits.astype(float), np.array([0, 1])))


def test_a_loss_that_is_not_certain_or_finite_and_data_in_another_form_or_order_are_refused():
    for outputs, targets, message in (
        (
            1,
            Y % 2,
            r"outputs float32 \(50, 1\) and targets int64 \(50,\).*loss=.*binary_margin_loss",
        ),
        (
            3,
            Y.astype(np.float32),
            r"outputs float32 \(50, 3\) and targets float32 \(50,\).*pass loss=",
        ),
        (1, VALUES[:, 0], r"outputs float32 \(50, 1\) and targets float32 \(50,\)"),
        (2, Y[:, None], r"targets int64 \(50, 1\)"),
        (3, Y + 1, "labels: expected whole numbers from 0 to 2, got 3"),
        (3, np.array(["a", "b"] * 25), "data: expected numbers, got values of type <U1"),
        (1, (Y[:, None] % 2).astype(np.float32), "all floating targets are 0, 1 or probabilities"),
        (
            3,
            softmax(RNG.normal(size=(50, 3)), axis=1),
            "all floating targets are 0, 1 or probabilities",
        ),
    ):
        refused(message, losses, network(outputs), (X, targets))
    unknown = X.copy()
    unknown[17] = np.nan
    for data, message in (
        (X, r"data: expected a DataLoader.*got ndarray"),
        ([(X, Y)], r"got list; a list could hold records or batches"),
        ((X, Y[:-1]), "as many targets as records, got 49 and 50"),
        (iter([(X, Y, Y)]), "expected batches .*got tuple of 3"),
        (iter([{"input": X}]), "expected batches with 'labels', got input"),
        ({"input": X}, "expected a dictionary with 'labels', got input"),
        (
            {"input": X, "labels": Y[:4]},
            "arrays of one length, got lengths {'input': 50, 'labels': 4}",
        ),
        (iter([]), "no records"),
        (loader(shuffle=True), r"shuffles or chooses records \(RandomSampler\).*shuffle=False"),
        (loader(sampler=WeightedRandomSampler([1.0] * 50, 50)), "WeightedRandomSampler"),
        (loader(sampler=[3, 1]), r"chooses records \(list\)"),
        (loader(drop_last=True), "drops the last batch.*drop_last=False"),
        (DataLoader(loader().dataset, batch_sampler=[[4, 5], [0, 1]]), r"chooses records \(list\)"),
        (loader(unknown), r"1 of 50 values are NaN \(first at index 17\)"),
    ):
        refused(message, losses, network(), data)


class OneByOne:
    """Batches one after the other; notes whether an earlier one is still alive when the next is
    asked for.
    """

    def __init__(self, count):
        self.left, self.given, self.alive = count, [], []

    def __iter__(self):
        return self

    def __next__(self):
        self.alive.append(sum(one() is not None for one in self.given))
        if not self.left:
            raise StopIteration
        self.left -= 1
        inputs = torch.randn(4, 6)
        self.given.append(weakref.ref(inputs))
        return inputs, torch.zeros(4, dtype=torch.int64)


@pytest.mark.parametrize("progress", [False, True])
def test_one_batch_is_in_memory_at_a_time_and_a_bar_is_shown_where_it_is_wanted(
    progress, capsys, monkeypatch
):
    monkeypatch.delenv("PAPERLIB_PROGRESS", raising=False)
    batches = OneByOne(20)
    assert losses(network(), batches, progress=progress).shape == (80,)
    assert batches.alive == [0] * 21
    losses(network(), (X, Y), batch_size=5, progress=progress)
    assert ("losses" in capsys.readouterr().err) == progress


# Estimators in the manner of scikit-learn


def test_a_classifier_gives_minus_log_the_probability_of_the_true_class():
    words = np.array(["c", "a", "b"])[Y]
    model = LogisticRegression().fit(X, words)
    place = {word: at for at, word in enumerate(model.classes_)}
    chosen = [row[place[word]] for row, word in zip(model.predict_proba(X), words, strict=True)]
    np.testing.assert_allclose(losses(model, (X, words)), -np.log(chosen), rtol=1e-6)
    np.testing.assert_allclose(losses(model, (X, words), batch_size=7), -np.log(chosen), rtol=1e-6)
    table, labels = pd.DataFrame(X, columns=list("abcdef")), pd.Series(Y, index=range(100, 150))
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1]}).fit(table, labels)
    expected = -np.log(search.predict_proba(table)[np.arange(50), Y])
    np.testing.assert_allclose(losses(search, (table, labels), batch_size=16), expected, rtol=1e-6)
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    wrong = np.where(model.predict_proba(X)[:, 0] == 0, 0, Y)
    values = losses(model, (X, wrong))
    assert values.max() == pytest.approx(-np.log(np.finfo(float).tiny))
    assert values.min() == 0
    assert not np.signbit(values).any()


def test_a_regressor_gives_the_squared_error():
    model = LinearRegression().fit(X, VALUES[:, 0])
    expected = (model.predict(X) - VALUES[:, 0]) ** 2
    np.testing.assert_allclose(losses(model, (X, VALUES[:, 0])), expected, rtol=1e-5)
    both = LinearRegression().fit(X, VALUES)
    expected = ((both.predict(X) - VALUES) ** 2).mean(axis=1)
    np.testing.assert_allclose(losses(both, (X, VALUES), batch_size=9), expected, rtol=1e-5)
    # An estimator without base class is known by its type.
    np.testing.assert_allclose(
        losses(Bare("regressor"), (X, VALUES[:, 0])), VALUES[:, 0] ** 2, rtol=1e-6
    )


class Bare:
    """An estimator without base class, of which scikit-learn knows nothing."""

    def __init__(self, kind=None, **attributes):
        if kind:
            self._estimator_type = kind
        self.__dict__.update(attributes)

    def predict(self, x):
        return np.zeros(len(x))


class Impossible(Bare):
    def predict_proba(self, x):
        return np.full((len(x), 3), 1.5)


def test_estimators_load_no_torch_and_others_no_scikit_learn():
    code = """
import sys
import numpy as np
from paperlib.audits import losses
assert losses(lambda data: data, [1.0, 2.0]).tolist() == [1.0, 2.0]
assert not {"sklearn", "torch", "transformers"} & set(sys.modules)
from sklearn.linear_model import LinearRegression, LogisticRegression
x, y = np.arange(8.0)[:, None], np.arange(8) % 2
for model in (LogisticRegression(), LinearRegression()):
    assert len(losses(model.fit(x, y), (x, y))) == 8
assert not {"torch", "transformers"} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# Language models

TEXTS = [f"The part {number} has the number {number * 7919 % 1000}." for number in range(40)]
TOKENIZER = train_tokenizer(TEXTS, 300, context=64)
LANGUAGE = new_language_model(
    LanguageModelConfig(width=16, layers=1, heads=2, context=64), len(TOKENIZER)
)


@pytest.fixture(scope="module")
@torch.no_grad()
def likelihoods():
    """Minus the mean log-likelihood of the tokens after the first, one text at a time."""
    tokens = [torch.tensor(TOKENIZER(text)["input_ids"]) for text in TEXTS]
    logits = [LANGUAGE(one[None]).logits[0].double() for one in tokens]
    return [
        functional.cross_entropy(a[:-1], b[1:]).item() for a, b in zip(logits, tokens, strict=True)
    ]


BLANK = pytest.mark.filterwarnings("ignore:model. most losses are those of guessed tokens")
"""Of tests that compute losses of a model that learned nothing."""


@BLANK
def test_texts_give_the_mean_negative_log_likelihood_of_their_tokens(likelihoods):
    for size in (None, 1, 2):
        values = losses((LANGUAGE, TOKENIZER), TEXTS, batch_size=size)
        np.testing.assert_allclose(values, likelihoods, rtol=1e-5)
    LANGUAGE.train()
    LANGUAGE.get_input_embeddings().eval()
    values = losses(LANGUAGE, TEXTS, tokenizer=TOKENIZER, device="cpu")
    np.testing.assert_allclose(values, likelihoods, rtol=1e-5)
    assert LANGUAGE.training
    assert not LANGUAGE.get_input_embeddings().training
    LANGUAGE.eval()
    for place in (0, 37):
        said = rf"text 'a' at index {place} has 1 token\(s\), and a loss"
        texts = [*TEXTS[:place], "a", *TEXTS[place:]]
        refused(said, losses, (LANGUAGE, TOKENIZER), texts, batch_size=1)


@BLANK
def test_a_pipeline_brings_model_and_tokenizer(likelihoods):
    pipeline = transformers.pipeline("text-generation", model=LANGUAGE, tokenizer=TOKENIZER)
    np.testing.assert_allclose(losses(pipeline, pd.Series(TEXTS)), likelihoods, rtol=1e-5)
    refused("the pipeline has its own", losses, pipeline, TEXTS, tokenizer=TOKENIZER)
    pipeline.task = "text-classification"
    refused(
        "pipeline for 'text-generation', got one for 'text-classification'", losses, pipeline, TEXTS
    )


def test_a_model_that_learned_nothing_is_named_and_one_that_learned_a_little_is_not():
    with pytest.warns(UserWarning, match="were its weights loaded"):
        losses((LANGUAGE, TOKENIZER), TEXTS)
    learned = copy.deepcopy(LANGUAGE)
    optimizer = torch.optim.Adam(learned.parameters(), lr=0.01)
    for text in TEXTS[:8]:
        tokens = torch.tensor(TOKENIZER(text)["input_ids"])
        optimizer.zero_grad()
        functional.cross_entropy(learned(tokens[None]).logits[0, :-1], tokens[1:]).backward()
        optimizer.step()
    losses((learned.eval(), TOKENIZER), TEXTS)  # a warning would be an error


@pytest.mark.parametrize("seed", range(4))
def test_chance_of_the_first_weights_does_not_hide_that_nothing_was_learned(seed):
    """Texts of one form have the same few tokens, on which untrained models may be a bit good."""
    config = LanguageModelConfig(width=64, layers=1, context=64, seed=seed)
    untrained = new_language_model(config, len(TOKENIZER))
    with pytest.warns(UserWarning, match="were its weights loaded"):
        losses((untrained, TOKENIZER), ["a a a a a a a a"] * 3)


# Functions


def squared(data):
    x, y = data
    return (np.asarray(x)[:, 0] - np.asarray(y)) ** 2


def test_a_function_is_asked_batch_by_batch_and_of_data_without_a_length_at_once():
    expected = squared((X, VALUES[:, 0]))
    for data in ((X, VALUES[:, 0]), (pd.DataFrame(X), pd.Series(VALUES[:, 0]))):
        for size in (None, 1, 7, 100):
            np.testing.assert_array_equal(losses(squared, data, batch_size=size), expected)
            named = dict(zip("xy", data, strict=True))
            values = losses(lambda given: squared((given["x"], given["y"])), named, batch_size=size)
            np.testing.assert_array_equal(values, expected)
    refused(
        r"arrays of one length, got lengths \[50, 3\]",
        losses,
        squared,
        (X, [1, 2, 3]),
        batch_size=2,
    )
    sizes = []
    losses(lambda words: sizes.append(len(words)) or [1.0] * len(words), ["a"] * 10, batch_size=4)
    assert sizes == [4, 4, 2]
    losses(
        lambda words: sizes.append(type(words)) or torch.ones(3, dtype=torch.bfloat16),
        ("a", "b", "c"),
    )
    assert sizes[3:] == [tuple]
    refused(
        r"shape \(4,\), got shape \(3,\)", losses, lambda words: [1.0] * 3, ["a"] * 10, batch_size=4
    )
    assert losses(lambda lines: [float(line) for line in lines], iter(["1", "2"])).tolist() == [
        1.0,
        2.0,
    ]
    said = r"batch_size: expected an array.*got list_iterator"
    refused(said, losses, lambda lines: list(lines), iter([1]), batch_size=2)


# What is refused


TWO = ["a", "b"]


def test_what_a_model_cannot_answer_another_kind_and_an_option_that_would_do_nothing_are_refused():
    for model, data, message, *options in (
        (LogisticRegression().fit(X, Y), (X, Y + 1), "label 3 at index .* fitted on .0, 1, 2."),
        (
            LogisticRegression().fit(X, Y),
            (X, Y.astype(str)),
            "label '.' at index 0 is none of the classes",
        ),
        (LogisticRegression(), (X, Y), "LogisticRegression has no classes_; fit it"),
        (RidgeClassifier().fit(X, Y), (X, Y), "no predict_proba.*CalibratedClassifierCV"),
        (LogisticRegression().fit(X, Y), X, r"expected records and targets, \(x, y\).*got ndarray"),
        (LogisticRegression().fit(X, Y), (X, Y[:-1]), "as many targets as records, got 49 and 50"),
        (
            LinearRegression().fit(X, VALUES),
            (X, VALUES[:, 0]),
            r"predictions, \(50, 2\), got \(50,\)",
        ),
        (RandomForestClassifier(2).fit(X, np.c_[Y, Y % 2]), (X, Y), "several outputs"),
        (RandomForestClassifier(2).fit(X, Y), (X, np.c_[Y, Y]), r"labels of shape \(50, 2\)"),
        (Bare(), (X, Y), "Bare says neither that it is a classifier nor a regressor"),
        (Bare("classifier"), (X, Y), "no predict_proba"),
        (
            Impossible(classes_=[0, 1, 2]),
            (X, Y),
            r"predict_proba gives 1.5 to 1.5; expected .*\[0, 1\]",
        ),
        (RandomForestClassifier, (X, Y), "got the class RandomForestClassifier"),
        ((LANGUAGE, TOKENIZER), "one text", "data: expected a sequence of texts, got str"),
        (
            (LANGUAGE, TOKENIZER),
            {"one": "a b"},
            "a sequence of texts, got dict; put its texts in a list",
        ),
        (lambda data: [1.0], {"one": "a"}, "a dictionary of arrays; give a list of its values"),
        ((LANGUAGE, TOKENIZER), ["a b", ""], "data: expected non-empty strings, got '' at index 1"),
        (
            LANGUAGE,
            TEXTS,
            r"tokenizer: needed for texts; call losses\(\(model, tokenizer\), texts\)",
        ),
        ((network(), TOKENIZER), ["a b", 3], "data: expected non-empty strings, got 3 at index 1"),
        (
            (lambda texts: texts, TOKENIZER),
            TEXTS,
            "causal language model with a tokenizer, got function",
        ),
        ((LANGUAGE, TOKENIZER, 3), TEXTS, "got a tuple of 3"),
        (
            lambda data: [1.0],
            TWO,
            r"model: expected one loss per record, shape \(2,\), got shape \(1,\)",
        ),
        (lambda data: [[1.0], [2.0]], TWO, r"got shape \(2, 1\)"),
        (lambda data: 1.0, TWO, r"got shape \(\)"),
        (lambda data: np.ma.masked_less([1.0, 2.0], 2), TWO, "some losses are masked"),
        (lambda data: ["1", "2"], TWO, "expected real numbers as losses, got values of type <U1"),
        (
            lambda data: [1.0, np.inf],
            TWO,
            r"losses: 1 of 2 values are infinite \(first at index 1\)",
        ),
        (3, (X, Y), r"a torch module, a fitted scikit-learn .*, or a function .*; got int"),
        (lambda x: x, [1.0], "device: not used for a function", {"device": "cpu"}),
        (lambda x: x, [1.0], "loss: not used for a function", {"loss": max}),
        (
            Bare("regressor"),
            (X, Y),
            "device: not used for a scikit-learn estimator",
            {"device": "cpu"},
        ),
        ((LANGUAGE, TOKENIZER), TEXTS, "loss: not used for a language model", {"loss": max}),
        (lambda x: x, [1.0], "batch_size: expected 1 or more, got 0", {"batch_size": 0}),
        (network(), loader(), "batch_size: the data come in batches already", {"batch_size": 4}),
        (network(), (X, Y), r"device: expected .* got 'cuda:99'", {"device": "cuda:99"}),
    ):
        refused(message, losses, model, data, **dict(*options))
