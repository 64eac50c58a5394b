# Log in at a registry in a folder of its own, which goes again: only whether the key is taken is asked.
# Parameters: registry user. Standard input: the key.
umask 077
mkdir -p /run/rackwright
folder=$(mktemp -d /run/rackwright/try-key.XXXXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT
said=$(timeout 120 docker --config "$folder" login --username "$user" --password-stdin "$registry" 2>&1) && exit 0
[ $? != 124 ] || { printf '%s\n' "Docker did not try the key at $registry within 120 s; next: journalctl -u docker --lines 50" >&2; exit 1; }
printf '%s\n' "the key for $registry is not taken: $said" >&2
echo "next: make a new one, put it into registry.key, and run again" >&2
exit 1
