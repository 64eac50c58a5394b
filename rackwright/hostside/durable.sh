# Functions that write so that after a power cut the old one is there or the new one, whole: the bytes reach the disk before
# the name does, and the name before the next step. A rename alone may leave an empty file, or come after what follows it.
durable_file() { # path, mode or nothing (0644); the content comes by standard input
  cat >"$1.new" && chmod "${2:-0644}" "$1.new" && sync "$1.new" && mv -fT "$1.new" "$1" && sync "${1%/*}" && return
  rm -f "$1.new" # what a full disk had no room for
  return 1
}
durable_link() { # path, target
  ln -sfn "$2" "$1.new" && mv -fT "$1.new" "$1" && sync "${1%/*}"
}
durable_folder() { # path; PATH.new is whole
  find "$1.new" -exec sync {} + && mv -T "$1.new" "$1" && sync "${1%/*}"
}
durably_gone() { # path
  rm -f "$1" && { [ ! -d "${1%/*}" ] || sync "${1%/*}"; }
}
