"""Registers the environments of the studies with Gymnasium, without importing a study.

After `import gymnasium, schedlab`, in this order, `gymnasium.make("schedlab/Adaptation-v0")` works. Without these
imports, or in the other order, use `gymnasium.make("schedlab.environments:schedlab/Adaptation-v0")`.
"""

import gymnasium

ENVIRONMENTS = {
    "schedlab/Adaptation-v0": "schedlab.studies.adaptation.example:make",
    "schedlab/Batch-v0": "schedlab.studies.batch.env.env:make",
    "schedlab/BatchWeights-v0": "schedlab.studies.batch.env.env:make_weights",
    "schedlab/CloudLive-v0": "schedlab.studies.cloud.live.env:make",
    "schedlab/CloudReplay-v0": "schedlab.studies.cloud.replay.env:make",
    "schedlab/Hetero-v0": "schedlab.studies.hetero.env.env:make",
    "schedlab/MoCloudReplay-v0": "schedlab.studies.cloud.replay.env:make_vector_reward",
    "schedlab/Ramp-v0": "schedlab.studies.ramp.env.env:make",
}
VECTOR_FORMS = {  # what gymnasium.make_vec makes
    "schedlab/Batch-v0": "schedlab.studies.batch.env.vector:make",
    "schedlab/CloudReplay-v0": "schedlab.studies.cloud.replay.vector:make",
}

for _name, _entry_point in ENVIRONMENTS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_entry_point, vector_entry_point=VECTOR_FORMS.get(_name))
