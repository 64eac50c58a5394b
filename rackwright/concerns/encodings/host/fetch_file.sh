# Fetch one published file: beside its place, checked by size and SHA-256, then moved in. The old one stays until then.
# Parameters: url path size sha256 stall mark (what a reading trusts instead of the bytes), http_proxy https_proxy no_proxy.
set -u
export http_proxy https_proxy no_proxy
fail() { printf 'error: %s\n' "$@"; exit 1; }
folder=${path%/*}
mkdir -p -m 0755 "$folder" || fail "$folder could not be made" "look at the disk: df -h"
new=$(mktemp "$path.XXXXXXXX") || fail "no file can be written in $folder" "look at the disk: df -h $folder"
trap 'rm -f "$new" "$new.err"' EXIT
trap 'exit 143' TERM INT

why() {
  case $1 in
    6 | 7) printf '%s\n' "no route: the host cannot reach $url; set mirrors.encodings or proxy, and run again" ;;
    22) printf '%s\n' "$url answers $2; check mirrors.encodings, and run again" ;;
    23) printf '%s\n' "the disk is full: $folder; free space there (df -h $folder) and run again" ;;
    28) printf '%s\n' "$url stalled: no byte for $stall s; run again" ;;
    35 | 60) printf '%s\n' "the certificate of $url is not trusted here; set paths.private_ca if the site has its own authority" ;;
    *) printf '%s\n' "curl ended with $1; run again" ;;
  esac
}

try=1
while :; do
  code=$(curl --silent --show-error --fail --location --connect-timeout 15 --speed-limit 1 --speed-time "$stall" \
    --output "$new" --write-out '%{http_code}' "$url" 2>"$new.err")
  status=$?
  [ $status = 0 ] && break
  case $status:$code in
    22:5* | 22:429 | 7:* | 18:* | 28:* | 52:* | 56:*) [ $try -lt 4 ] || fail "$(cat "$new.err")" "$(why $status "$code")" ;;
    *) fail "$(cat "$new.err")" "$(why $status "$code")" ;;
  esac
  printf '%s\n' "try $try failed ($(tail -n 1 "$new.err")); again in $((try * 2)) s"
  sleep $((try * 2)); try=$((try + 1))
done

got=$(stat -c %s "$new")
[ "$got" = "$size" ] || fail "$url has $got bytes and should have $size: not taken, what was there stays" \
  "the source is damaged or something on the way answers for it; check mirrors.encodings and proxy"
got=$(sha256sum <"$new" | cut -d' ' -f1)
[ "$got" = "$sha256" ] || fail "$url has the SHA-256 $got and should have $sha256: not taken, what was there stays" \
  "the source is damaged or something on the way answers for it; check mirrors.encodings and proxy"
chown root:root "$new" && chmod 0644 "$new" && sync -d "$new" && mv -f "$new" "$path" || fail "$path could not be written" "df -h $folder"
# Without it a reading hashes the file itself.
mkdir -p "${mark%/*}" && printf '%s %s\n' "$sha256" "$(stat -c '%i:%s:%.Y:%.Z' "$path")" >"$mark.new" && mv -f "$mark.new" "$mark"
printf '%s\n' "$path: $size bytes, SHA-256 as published"
