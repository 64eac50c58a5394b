# Put one registry's login into Docker's config.json, or take it out; everything else in it stays.
# The login comes by standard input. awk, because a bare host has neither jq nor Python.
#include behind.sh
set -eu
umask 077
[ "$act" = put ] || [ -s "$config" ] || exit 0
mkdir -p -m 0700 "${config%/*}"
config=$(behind "$config")
folder=${config%/*}
# An edit that was killed has left a copy, with its login.
rm -rf "$folder"/.rackwright.????????
[ -s "$config" ] || printf '{}\n' >"$config"
new=$(mktemp -d "$folder/.rackwright.XXXXXXXX")
trap 'rm -rf "$new"' EXIT

if [ "$act" = put ]; then cat; else echo; fi | awk -v registry="$registry" -v act="$act" '
  NR == FNR { auth = $0; next }
  { text = text $0 "\n" }
  function drop(  rest, before) {
    before = substr(text, 1, RSTART - 1); rest = substr(text, RSTART + RLENGTH)
    if (rest ~ /^[ \t\r\n]*,/) sub(/^[ \t\r\n]*,[ \t\r\n]*/, "", rest)
    else sub(/,[ \t\r\n]*$/, "", before)
    text = before rest
  }
  END {
    name = registry; gsub(/[.]/, "[.]", name)
    entry = "\"" registry "\": {\"auth\": \"" auth "\"}"
    there = match(text, "\"" name "\"[ \t\r\n]*:[ \t\r\n]*[{][^{}]*[}]")
    if (act == "drop") { if (there) drop() }
    else if (there) text = substr(text, 1, RSTART - 1) entry substr(text, RSTART + RLENGTH)
    else if (match(text, /"auths"[ \t\r\n]*:[ \t\r\n]*[{]/)) {
      rest = substr(text, RSTART + RLENGTH)
      text = substr(text, 1, RSTART + RLENGTH - 1) entry (rest ~ /^[ \t\r\n]*[}]/ ? "" : ", ") rest
    } else if (match(text, /^[ \t\r\n]*[{]/)) {
      rest = substr(text, RSTART + RLENGTH)
      text = "{\"auths\": {" entry "}" (rest ~ /^[ \t\r\n]*[}]/ ? "" : ",") rest
    }
    printf "%s", text
  }
' - "$config" >"$new/config.json"

if command -v docker >/dev/null 2>&1 && timeout 60 docker --config "$new" context ls 2>&1 >/dev/null | grep -qi 'error .*config file'; then
  printf '%s\n' "$config is not what Docker can read, so no login was changed; repair it, or move it away, and run again" >&2
  exit 1
fi
sync -d "$new/config.json"
mv -fT "$new/config.json" "$config"
