# Take away the names that a pull from a bundle has left which was killed: in /etc/hosts, and of images. Parameters: run.
#include bundle_names.sh
# A pull that is under way has the lock, and takes its names away itself.
if [ -d "$run" ]; then
  exec 8>>"$run/bundle.lock"
  flock --nonblock 8 || exit 0
fi
own_names && ! grep -qsF "$tag" $hosts || { printf '%s\n' "$hosts could not be written; next, on the host: ls -l $hosts" >&2; exit 1; }
named_by_address | while read -r image; do timeout 60 docker rmi "$image" >/dev/null 2>&1; done
image=$(named_by_address | head -n 1)
[ -z "$image" ] || { printf '%s\n' "the image $image stays; next, on the host: docker rmi $image" >&2; exit 1; }
