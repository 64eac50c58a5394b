"""SSH as fleets have it: bastions, small limits of sshd, and the keys of hosts."""
