"""Registers the studies' environments with Gymnasium; imports no study.

`import gymnasium, schedlab` is enough before `gymnasium.make("schedlab/Adaptation-v0")`; in the other order, and where nothing is
imported, `gymnasium.make("schedlab.environments:schedlab/Adaptation-v0")` works.
"""

import gymnasium

ENVIRONMENTS = {
    "schedlab/Adaptation-v0": "schedlab.studies.adaptation.env:make",
    "schedlab/Batch-v0": "schedlab.studies.batch.env:make",
    "schedlab/BatchWeights-v0": "schedlab.studies.batch.env_weights:make",
    "schedlab/CloudLive-v0": "schedlab.studies.cloud.env_live:make",
    "schedlab/CloudReplay-v0": "schedlab.studies.cloud.env:make",
    "schedlab/Hetero-v0": "schedlab.studies.hetero.env:make",
    "schedlab/MoCloudReplay-v0": "schedlab.studies.cloud.env:make_vector_reward",
    "schedlab/Ramp-v0": "schedlab.studies.ramp.env:make",
}
VECTOR_FORMS = {  # what gymnasium.make_vec makes
    "schedlab/Batch-v0": "schedlab.studies.batch.env_vector:make",
    "schedlab/CloudReplay-v0": "schedlab.studies.cloud.env_vector:make",
}

for _name, _entry_point in ENVIRONMENTS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_entry_point, vector_entry_point=VECTOR_FORMS.get(_name))
