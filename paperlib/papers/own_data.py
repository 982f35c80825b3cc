"""A demonstration of the audit of one's own data: a real table, a target, and its training."""

from functools import cache, partial

import pandas as pd

from paperlib.audits.panoramia.audit import AuditData
from paperlib.audits.panoramia.pools import Model, Trainer
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, losses, train
from paperlib.data.tables.labelled import load_table
from paperlib.generators.tabular import TableGenerator
from paperlib.report import used_data

_MEMBERS = 0.9


def demonstration(
    *, epochs: int = 100, generator: TableGenerator | None = None, seed: int = 0
) -> tuple[AuditData, Model, Trainer]:
    """Members of the RAND table, a target trained on them, and its training, as `audit_model` takes them."""
    table = load_table("randhie", "visits")
    used_data("randhie (statsmodels)", table.rows.to_csv(index=False).encode())
    cut = round(_MEMBERS * len(table.rows))
    order = table.rows.sample(frac=1, random_state=seed).reset_index(drop=True)
    members, others = order[:cut].reset_index(drop=True), order[cut:].reset_index(drop=True)
    encoder = RowEncoder.fit(others, table.label, table.classes)
    place = {row: at for at, row in enumerate(map(tuple, members.itertuples(index=False)))}

    @cache
    def trained(rows: tuple[int, ...], seed: int) -> Model:
        config = Learning().plain(encoder, epochs, seed)
        return partial(losses, encoder, train(encoder, members.iloc[list(rows)], [config]))

    def train_again(rows: pd.DataFrame, seed: int) -> Model:
        return trained(tuple(place[tuple(row)] for row in rows.itertuples(index=False)), seed)

    audited = bring_table(members, label=table.label, generator=generator, epochs=epochs, seed=seed)
    return audited, train_again(members, seed), train_again
