# Functions that find the Hugging Face caches of this host which hold one model. Users write these folders, and the files that name them:
# no file of theirs is run, and no link of theirs leads out of their home.
# Parameters: hub_caches (patterns of folders; ~ in front stands for each user's home) model (the name of the model's folder in a cache).
homes() { # prints each user's home; one on a share that does not answer is left out
  { printf '%s\n' /root /home/*; timeout 20 getent passwd | cut -d: -f6; } | sort -u | while IFS= read -r home; do
    case $home in '' | / | *[!A-Za-z0-9._/@+-]*) continue ;; esac
    timeout -k 1 5 test -d "$home/." && printf '%s\n' "$home"
  done
}
named_in() { # files that set environment variables; prints each variable that names a cache, and its value
  for file in "$@"; do [ ! -f "$file" ] || { timeout -k 1 5 head -c 65536 "$file"; echo; }; done 2>/dev/null |
    sed -nE "s/^[[:space:]]*(export[[:space:]]+)?(HF_HUB_CACHE|HUGGINGFACE_HUB_CACHE|HF_HOME|XDG_CACHE_HOME)=[\"']?([^\"'[:space:];#]+).*/\2 \3/p"
}
meant() { # home; reads lines of `named_in`, prints the caches
  sed -E "s|^([A-Z_]+) ~/|\1 $1/|; s|[$][{]?HOME[}]?|$1|g; s|[$][{]?USER[}]?|${1##*/}|g" | while read -r key place; do
    case $key in HF_HOME) place=$place/hub ;; XDG_CACHE_HOME) place=$place/huggingface/hub ;; esac
    case $place in /*) printf '%s\n' "$place" ;; esac
  done
}
possible() { # prints where caches may be, each behind the home out of which it must not lead, or `-` where root has named it
  for cache in $hub_caches; do
    case $cache in '~'*) ;; *) printf -- '- %s\n' "$cache" ;; esac
  done
  everywhere=$(named_in /etc/environment /etc/environment.d/*.conf /etc/profile /etc/profile.d/*.sh /etc/bash.bashrc)
  homes | while IFS= read -r home; do
    for pattern in $hub_caches; do
      case $pattern in '~'*) for cache in "$home"${pattern#'~'}; do printf '%s %s\n' "$home" "$cache"; done ;; esac
    done
    printf '%s\n' "$everywhere" | meant "$home" | sed 's/^/- /'
    named_in "$home"/.profile "$home"/.bash_profile "$home"/.bashrc "$home"/.zshenv "$home"/.zshrc "$home"/.config/environment.d/*.conf |
      meant "$home" | sed "s|^|$home |"
  done
}
within() { # home, a cache, what it really is; true where it does not lead out of the home
  [ "$1" = - ] || [ "$3" = "$2" ] || case $3 in "$(readlink -e "$1")"/*) true ;; *) false ;; esac
}
really() { # a cache; sets `real` to what it really is; false where its name cannot be handed on
  real=$(timeout -k 1 5 readlink -e "$1") || return 1
  case $real in *[!A-Za-z0-9._/@+-]*) return 1 ;; esac
}
holding() { # prints the caches that hold the model, as they really are, each once
  possible | sort -u | while read -r home cache; do
    really "$cache" || continue
    [ -d "$real/$model" ] && [ ! -L "$real/$model" ] || continue
    if within "$home" "$cache" "$real"; then
      printf '%s\n' "$real"
    else
      printf '%s\n' "the cache $cache leads out of $home, to $real, and is not used; next: name $real in models.hub_caches" >&2
    fi
  done | sort -u
}
