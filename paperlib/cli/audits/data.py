"""``paperlib audit-data``: PANORAMIA on the data that a model was trained on, from files."""

from typing import Annotated, Literal

import typer

from paperlib.cli import options
from paperlib.cli.gate import Wishes

EXAMPLES = {
    "audit-data": """
paperlib audit-data rows.csv --target m.py:losses --label income
paperlib audit-data rows.csv --target m.py:losses --train-again m.py:train
paperlib audit-data images.npz --kind images --target w.safetensors
paperlib audit-data my_documents --kind text --target folder/of/a/model
paperlib audit-data rows.csv --target m.py:losses --generated new.csv --known-c 0
""",
}
"""What help shows below each command, one call a line."""


def audit_data(
    members: Annotated[
        str,
        typer.Argument(
            metavar="MEMBERS",
            help="The training data: CSV or Parquet, NPZ, or a file or folder of text.",
        ),
    ],
    *,
    kind: Annotated[
        Literal["table", "images", "text"], typer.Option(help="Kind of the data and of the model.")
    ] = "table",
    target: Annotated[
        str,
        typer.Option(
            metavar="FILE.py:FUNCTION",
            help=(
                "Your function that returns one loss for each of rows, (images, labels) or texts;"
                " its file is run. Or a language model by name or folder, or a classifier in "
                ".safetensors."
            ),
        ),
    ],
    train_again: Annotated[
        str,
        typer.Option(
            metavar="FILE.py:FUNCTION",
            help=(
                "Your function that trains the model again on examples with a seed, and returns a"
                " function like the target; it checks the number."
            ),
        ),
    ] = "",
    label: Annotated[str, typer.Option(help="Column of the table that the model predicts.")] = "",
    architecture: Annotated[
        str, typer.Option(help="Architecture of a .safetensors file, such as resnet18.")
    ] = "",
    classes: Annotated[
        int, typer.Option(min=2, help="Number of classes of a .safetensors file.")
    ] = 10,
    generated: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Examples of your own generator, trained on no member. Default: fit one.",
        ),
    ] = "",
    nonmembers: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Real examples that the model was not trained on, to add a lower bound.",
        ),
    ] = "",
    base: Annotated[
        str,
        typer.Option(help="Language model to fine-tune as text generator. Default: a small one."),
    ] = "",
    unit: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help=(
                "Column of a table that identifies one record, such as a customer with several "
                "rows: one row of each is audited."
            ),
        ),
    ] = "",
    tokens: Annotated[int, typer.Option(min=1, help="Length of a chunk of text.")] = 32,
    known_c: Annotated[
        float | None,
        typer.Option(
            min=0, help="c of your generator, if known, nats (0: draws from the true distribution)."
        ),
    ] = None,
    search: Annotated[
        Literal["anytime", "union"], typer.Option(help="Correction for testing many recall levels.")
    ] = "anytime",
    delta: options.Delta = 0.0,
    gamma: Annotated[
        float, typer.Option(help="The bound c may fail on a set of this probability, in [0, 1).")
    ] = 0.0,
    confidence: options.Confidence = 0.95,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "Games with other splits; the first gives the claim. Default: 10 with "
                "--train-again, else 3."
            ),
        ),
    ] = None,
    restarts: Annotated[
        int,
        typer.Option(min=1, help="Trainings of the best attack, of which validation chooses one."),
    ] = 5,
    seed: options.Seed = 0,
    group_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help=(
                "Column of a table, such as a site, whose values look like units though each row "
                "is a record of its own; can be repeated."
            ),
        ),
    ] = None,
    claimed_epsilon: options.ClaimedEpsilon = None,
    fail_above: options.FailAbove = None,
    junit: options.Junit = None,
    about: options.About = None,
    questions: options.Questions = None,
    output: options.Output = None,
    as_json: options.Json = False,
    read_limit: options.ReadLimit = None,
) -> int:
    """Audit a model with generated non-members (PANORAMIA).

    It takes the training data of the model. The number is a measurement. With --train-again, a null
    model checks it. With --known-c or --nonmembers, there is a lower bound. The notebook
    panoramia_your_data shows a demonstration without files of yours.
    """
    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    from paperlib.audits.panoramia.files import audit_files

    files = {
        "Members": members,
        "Target": target,
        "Trained again by": train_again,
        "Generated": generated,
        "Non-members": nonmembers,
    }
    about_file = wishes.checked(members, generated, nonmembers)
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
        group_columns=group_column or (),
        known_c=known_c,
        search=search,
        delta=delta,
        gamma=gamma,
        confidence=confidence,
        repetitions=repetitions,
        restarts=restarts,
        seed=seed,
    )
    document_fields = wishes.parts(
        about_file,
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
    document = audit.document(subject=f"{target} on {members}", **document_fields)
    text = [" ".join(document.verdict.sentences), *map(str, document.answers)]
    return wishes.deliver(document, members, text)
