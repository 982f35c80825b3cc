from .dataset_inference import infer_dataset as infer_dataset
from .language import score_candidates as score_candidates
from .language import score_texts as score_texts
from .learned import BoostedTrees as BoostedTrees
from .learned import fit_best as fit_best
from .shadow import lira_offline as lira_offline
from .shadow import lira_online as lira_online
from .shadow import rmia as rmia
