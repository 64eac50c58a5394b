# Functions by which an image is loaded under a loopback address, where its name cannot lead to this host.
# Parameters: here (the reference under the address) tagged always (not empty: Docker Hub's).
# By `name`: the name leads here while Docker pulls. By `tag`, in containerd's store: the digest of the one name is that of the other, so a tag is
# enough. By `layers`, for Docker Hub's images and behind a proxy of dockerd's: a pull by the real name then asks its registry for the manifests alone.
way_in() { # prints the way
  asked=$(timeout 60 docker info --format '{{.HTTPProxy}}{{.HTTPSProxy}} {{.DriverStatus}}' 2>/dev/null)
  case "${asked#* }" in
    *io.containerd.snapshotter*) timeout 60 docker image inspect "$tagged" >/dev/null 2>&1 || { echo tag; return; } ;;
  esac
  if [ -n "$always${asked%% *}" ]; then echo layers; else echo name; fi
}
load_layers() { # and say now and then how far that is: unpacking takes minutes
  docker pull "$here" >"$JOB/layers" 2>&1 &
  loading=$! seconds=0
  while kill -0 "$loading" 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    [ $((seconds % 15)) != 0 ] || event progress "unpacking: $(layers_that 'Pull complete') of $(layers_that 'Pulling fs layer') layers, $seconds s"
  done
  wait "$loading" && return
  printf '%s\n' "error: $here could not be loaded" "$(tail -n 3 "$JOB/layers")"
  return 1
}
layers_that() { grep -c ": $1\$" "$JOB/layers"; }
forget_address() { timeout 60 docker rmi "$here" >/dev/null 2>&1; }
