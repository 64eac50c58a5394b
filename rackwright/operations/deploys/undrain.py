"""Take drained hosts into service again: started, asked, unmarked."""

from rackwright.operations.maintenance import let_followers_wait, undrain, undrain_followers

let_followers_wait(name="Hosts that serve with a head wait for it")
undrain(name="The host serves again the release from before it was drained")
undrain_followers(name="Hosts that serve with a head serve again")
