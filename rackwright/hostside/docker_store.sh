# A function that names the keys of dockerd's file by which its next start takes another store, where the images of now are
# missing: an edit that dockerd has not taken. It stands behind docker_lacks.sh. Prints nothing where it cannot be known.
docker_other_store() { # `docker info` as JSON, dockerd's process; prints a key a line
  case $1 in *'"DockerRootDir":"/'*) ;; *) return 0 ;; esac
  [ -r "/proc/$2/cmdline" ] || return 0
  docker_words "$2"
  store_now=${1#*'"DockerRootDir":"'} store_now=${store_now%%'"'*} store_mapped=no store_maps=no
  # Where dockerd maps users, its store is a folder below the one that was set.
  case $1 in *'"name=userns'*) store_now=${store_now%/*} store_mapped=yes ;; esac
  case $lacks_words in *'"userns-remap":"'[!\"]* | *' --userns-remap='[!\ ]* | *' --userns-remap '*) store_maps=yes ;; esac
  [ $store_maps = $store_mapped ] || echo userns-remap
  store_key=data-root
  case $lacks_words in
    *'"data-root":"/'*) store_wanted=${lacks_words#*'"data-root":"'} store_wanted=${store_wanted%%'"'*} ;;
    *'"graph":"/'*) store_key=graph store_wanted=${lacks_words#*'"graph":"'} store_wanted=${store_wanted%%'"'*} ;;
    *' --data-root='*) store_wanted=${lacks_words#*' --data-root='} store_wanted=${store_wanted%% *} ;;
    *' --data-root '*) store_wanted=${lacks_words#*' --data-root '} store_wanted=${store_wanted%% *} ;;
    *' --graph='* | *' --graph '* | *' -g '* | *' -g='* | *'"graph":'* | *'"data-root":'*) store_wanted=$store_now ;;
    *) store_wanted=/var/lib/docker ;;
  esac
  if [ "$store_now" != "$store_wanted" ]; then
    # dockerd says where a link leads. A path with blanks was read without them.
    store_real=$(readlink -f "$store_wanted" 2>/dev/null)
    store_bare=$(printf %s "$store_now" | tr -d ' \t')
    [ "$store_now" = "${store_real:-$store_wanted}" ] || [ "$store_bare" = "$store_wanted" ] || printf '%s\n' "$store_key"
  fi
  store_version=${1#*'"ServerVersion":"'} store_version=${store_version%%[!0-9]*} store_images=layers store_wanted=
  case $1 in *'io.containerd.snapshotter'*) store_images=containerd ;; esac
  # Earlier versions do not know the key.
  [ "${store_version:-0}" -lt 24 ] || case $lacks_words in
    *'"containerd-snapshotter":true'*) store_wanted=containerd ;;
    *'"containerd-snapshotter":false'*) store_wanted=layers ;;
  esac
  [ "${store_wanted:-$store_images}" = $store_images ] || echo features.containerd-snapshotter
  store_driver=${1#*'"Driver":"'} store_driver=${store_driver%%'"'*}
  case $store_images:$lacks_words in
    containerd:*) ;;
    *'"storage-driver":"'[!\"]*)
      store_wanted=${lacks_words#*'"storage-driver":"'}
      [ "${store_wanted%%'"'*}" = "$store_driver" ] || echo storage-driver ;;
  esac
}
