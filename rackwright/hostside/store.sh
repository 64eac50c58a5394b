# Functions that name the file system below a folder, the same after a reboot and after another mount of the same share.
# A device's number is neither: those of network file systems, and of disks that are found in another order, change.
mount_of() ( # folder; prints the number of its mount, which is another one over the same path
  [ -r "$1" ] && { exec 9<"$1"; } 2>/dev/null || exit 0
  while read -r key value; do case $key in mnt_id:) printf %s "$value" ;; esac; done </proc/self/fdinfo/9
)
store_of() ( # folder; prints nothing where no name can be trusted
  [ -r "$1" ] && { exec 9<"$1"; } 2>/dev/null || exit 0
  # By the mount's number: a path may have several mounts, one over the other.
  number=$(sed -n 's/^mnt_id:[[:space:]]*//p' /proc/self/fdinfo/9)
  set -f
  # shellcheck disable=SC2046 - words: type, source, options; what is odd in them is escaped
  set -- $(sed -n "s/^$number .* - //p" /proc/self/mountinfo)
  case ,${3:-}, in
    *,user_id=0,*) ;;
    *,user_id=*) exit 0 ;; # of an ordinary user, who chooses what it says of its files, its name, and its bytes
  esac
  case ${2:-} in
    # Read from the disk (-p): what blkid remembers may be another disk's.
    /dev/*) uuid=$(blkid -p -o value -s UUID "$2" 2>/dev/null) && [ -n "$uuid" ] && set -- "$1" "$uuid" ;;
  esac
  [ -z "${2:-}" ] || printf '%s:%s' "$1" "$2"
)
on_share() { # folder, kinds of file systems that several hosts may have mounted; true as well where no name can be trusted
  store=$(store_of "$1")
  shift
  case ${store%%:*} in '' | fuse.*) true ;; *) case " $* " in *" ${store%%:*} "*) true ;; *) false ;; esac ;; esac
}
stores_in() { # folder; it and each folder in it with its store, as pairs that end in NUL: anybody may have chosen the names
  for place in "$1" "$1"/*/; do
    [ ! -d "$place" ] || printf '%s\0%s\0' "${place%/}" "$(store_of "$place")"
  done
}
