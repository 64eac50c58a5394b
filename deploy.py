"""The story of one host, from a bare OS to an LLM endpoint that has answered.

Run it with `pyinfra inventory/gb200.py deploy.py`; it is safe to run again at any time. What is not called here is
neither planned nor changed on any host.
"""

from tasks import close_direct, converged, docker, dockerd, driver, encodings, endpoint, firewall, gateway, image
from tasks import models, options, preflight, registry, release, retention, watch

preflight()  # is this host able to run its endpoint? a stop ends it before anything is written

docker()  # Docker Engine, the NVIDIA runtime, and who may use them
driver()  # stage: NVIDIA's driver, where the settings name one; `rackwright rollout --drivers` switches
firewall()  # who may reach the port, confirmed over a new connection
registry()  # the login for the image

image()  # stage: by digest
encodings()  # stage: the tiktoken files, by SHA-256
models()  # stage: base and draft model, by commit
release()  # stage: engine YAML and unit
options()  # the image itself accepts its options

dockerd()  # a restart of dockerd, where one is due, takes the host's turn too
endpoint()  # switch in the host's turn, ask, and roll back when the answer is wrong

watch()  # between two deploys: hung and dead engines are found, and reported or restarted
gateway()  # on hosts of the group gateway: HAProxy in front of all endpoints
close_direct()  # where the settings say so: the endpoints' ports let in the gateways alone
retention()  # images and models that no kept release names
converged()  # read once more: nothing is left to change
