"""Without anything of your own: a small network trained on a real table, and a null beside it."""

from functools import partial

import pandas as pd

from paperlib.audits.panoramia.brought import AuditData, Model
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, losses, train
from paperlib.data.tables.labelled import load_table
from paperlib.generators.tabular import TableGenerator
from paperlib.report import used_data

_MEMBERS = 0.65


def demonstration(
    *, epochs: int = 100, generator: TableGenerator | None = None, seed: int = 0
) -> tuple[AuditData, dict[str, Model]]:
    """Members of the RAND table, and two targets: one trained on them, one on other rows (the null).

    Args:
        epochs: Training epochs of both targets, 1 or more.
        generator: Generator of non-members, as in `bring_table`.
        seed: Seed of the parts, the generator and the models, 0 or more.

    Returns:
        What `audit_model` takes.
    """
    table = load_table("randhie", "visits")
    used_data("randhie (statsmodels)", table.rows.to_csv(index=False).encode())
    cut = round(_MEMBERS * len(table.rows))
    order = table.rows.sample(frac=1, random_state=seed).reset_index(drop=True)
    members, others = order[:cut].reset_index(drop=True), order[cut:].reset_index(drop=True)
    encoder = RowEncoder.fit(others, table.label, table.classes)
    learning = Learning()

    def target(rows: pd.DataFrame) -> Model:
        return partial(losses, encoder, train(encoder, rows, [learning.plain(encoder, epochs, seed)]))

    brought = bring_table(members, label=table.label, generator=generator, epochs=epochs, seed=seed)
    return brought, {"trained on the members": target(members), "null: trained on others": target(others)}
