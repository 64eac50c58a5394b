# A function that finds the file which a write replaces. A link stays a link: who manages the file behind it still does, and no old secret
# stays there. But root writes nothing where others choose what is written over. No single quotes: scripts are quoted within scripts.
behind() ( # path; prints the file; where none may be written it says why, and ends 1
  bad() { printf "%s\n" "$path $1, so it was not written; next: $2" >&2; exit 1; }
  path=$1 file=$1
  if [ -L "$1" ]; then
    file=$(readlink -f "$1") || bad "is a link that leads nowhere, to $(readlink "$1")" "rm $1"
    own="cp --remove-destination $file $1"
    [ -w "${file%/*}/." ] || bad "leads to $file, where nothing can be written" "$own"
    at=$file
    while [ -n "$at" ]; do
      [ -z "$(find "$at" -maxdepth 0 \( ! -uid 0 -o -type d -perm /022 ! -perm -1000 \) 2>&-)" ] ||
        bad "leads to $file, and $at can be changed by others than root" "$own"
      at=${at%/*}
    done
  fi
  if [ -e "$file" ]; then
    [ -f "$file" ] || bad "is not a file" "ls -ld $file; move it away"
    [ "$(stat -c %h "$file")" = 1 ] || bad "has another name, which would keep its content" "find / -xdev -samefile $file"
  fi
  printf "%s\n" "$file"
)
