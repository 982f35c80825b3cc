"""What is said of an audit on completions alone: on what training took its loss from."""

BY_TURNS = (
    "the chat template marks nothing as generated: what training took its loss from was told turn "
    "by turn, as all that the template adds for a message of the assistant behind the earlier "
    "messages and the start of an answer; with other masks in training, the losses are not those "
    "of training"
)
"""The remark on an audit on completions whose template has no generation marks."""

IN_PROMPT = "completion whose identifier or a part of it stands in the text before it"
"""Why an identifier of a completion was left out."""
