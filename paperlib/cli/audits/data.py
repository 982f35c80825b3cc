"""``paperlib audit-data``: PANORAMIA on the data that a model was trained on, from files."""

from typing import Literal

from paperlib.cli.gate import Wishes, with_wishes

_NOTEBOOK = "the notebook panoramia_your_data shows a demonstration without files of yours"


@with_wishes
def audit_data(
    members: str = "",
    kind: Literal["table", "images", "text"] = "table",
    target: str = "",
    train_again: str = "",
    label: str = "",
    architecture: str = "",
    classes: int = 10,
    generated: str = "",
    nonmembers: str = "",
    base: str = "",
    unit: str = "",
    tokens: int = 32,
    known_c: float | None = None,
    search: Literal["anytime", "union"] = "anytime",
    delta: float = 0.0,
    gamma: float = 0.0,
    confidence: float = 0.95,
    repetitions: int | None = None,
    restarts: int = 5,
    seed: int = 0,
    *,
    group_column: list[str] | None = None,
    wishes: Wishes,
) -> int:
    """Audit a model with its training data and generated non-members (PANORAMIA).

    The number is a measurement. With --train-again, a null model checks it. With --known-c or
    --nonmembers, there is a lower bound.
    """
    if not members or not target:
        missing = "MEMBERS" if not members else "--target"
        raise ValueError(
            f"{missing}: name what the model was trained on and the model; {_NOTEBOOK}"
        )
    from paperlib.audits.panoramia.files import audit_files, check_table_files

    files = {
        "Members": members,
        "Target": target,
        "Trained again by": train_again,
        "Generated": generated,
        "Non-members": nonmembers,
    }
    owner = wishes.checked(members, generated, nonmembers)
    if kind == "table" and nonmembers and not unit:
        check_table_files(members, nonmembers, group_column or ())
    audit = audit_files(
        kind,
        members,
        target,
        train_again=train_again,
        label=label,
        architecture=architecture,
        classes=classes,
        generated=generated,
        nonmembers=nonmembers,
        base=base,
        tokens=tokens,
        unit=unit,
        known_c=known_c,
        search=search,
        delta=delta,
        gamma=gamma,
        confidence=confidence,
        repetitions=repetitions,
        restarts=restarts,
        seed=seed,
    )
    facts = wishes.parts(
        owner,
        files,
        {"target": target},
        kind=kind,
        label=label,
        unit=unit,
        known_c=known_c,
        search=search,
        repetitions=repetitions,
        restarts=restarts,
        seed=seed,
    )
    document = audit.document(subject=f"{target} on {members}", **facts)
    text = [" ".join(document.verdict.sentences), *map(str, document.answers)]
    return wishes.deliver(document, members, text)
