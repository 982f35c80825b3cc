"""Made-up data in the official file layouts: for rehearsals, never for results."""

from paperlib.reproduction.made_up.folder import made_up_folder, made_up_variables

__all__ = ["made_up_folder", "made_up_variables"]
