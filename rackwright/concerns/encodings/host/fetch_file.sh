# Fetch one published file: in a folder of root's alone, checked by size and SHA-256, then moved in. The old one stays until then.
# Parameters: url path size sha256 stall mark (what a reading trusts instead of the bytes), http_proxy https_proxy no_proxy.
set -u
export http_proxy https_proxy no_proxy
fail() { printf 'error: %s\n' "$@"; exit 1; }
longest=420
folder=${path%/*} new=
mkdir -p -m 0755 "$folder" || fail "$folder could not be made" "look at the disk: df -h"
work=$(mktemp -d) || fail "no file can be written in ${TMPDIR:-/tmp}" "look at the disk: df -h ${TMPDIR:-/tmp}"
trap 'rm -rf "$work"; [ -z "$new" ] || rm -f "$new"' EXIT
trap 'exit 143' TERM INT
# No server may send us to a scheme that was not asked for; https is always allowed.
case $url in https:*) schemes=https ;; http:*) schemes=http,https ;; *) schemes=${url%%:*} ;; esac

why() {
  case $1 in
    1) printf '%s\n' "$url leads to an address that is not https; check mirrors.encodings, and run again" ;;
    6 | 7) printf '%s\n' "no route: the host cannot reach $url; set mirrors.encodings or proxy, and run again" ;;
    22) printf '%s\n' "$url answers $2; check mirrors.encodings, and run again" ;;
    23) printf '%s\n' "the disk is full: $work; free space there (df -h $work) and run again" ;;
    28) printf '%s\n' "$url stalled: no byte for $stall s, or not all of it in $longest s; run again" ;;
    35 | 60) printf '%s\n' "the certificate of $url is not trusted here; set paths.private_ca if the site has its own authority" ;;
    47) printf '%s\n' "$url leads from one address to the next, and to no file; check mirrors.encodings, and run again" ;;
    *) printf '%s\n' "curl ended with $1; run again" ;;
  esac
}
too_large() {
  fail "$url has more than $size bytes: not taken, what was there stays" \
    "the source is damaged or something on the way answers for it; check mirrors.encodings and proxy"
}
get() ( # older releases of curl do not know --max-filesize of an answer without a length: the system ends those, by blocks of 512 bytes
  ulimit -f $((size / 512 + 1))
  curl --silent --show-error --fail --location --proto "=$schemes" --proto-redir "=$schemes" --max-redirs 5 --max-filesize "$size" \
    --connect-timeout 15 --speed-limit 1 --speed-time "$stall" --max-time $longest --output "$work/file" --write-out '%{http_code}' "$url" 2>"$work/err"
)

try=1
while :; do
  code=$(get)
  status=$?
  [ $status = 0 ] && break
  got=$(stat -c %s "$work/file" 2>/dev/null)
  [ $status != 63 ] && [ "${got:-0}" -le "$size" ] || too_large
  case $status:$code in
    22:5* | 22:429 | 7:* | 18:* | 28:* | 52:* | 56:*) [ $try -lt 4 ] || fail "$(cat "$work/err")" "$(why $status "$code")" ;;
    *) fail "$(cat "$work/err")" "$(why $status "$code")" ;;
  esac
  printf '%s\n' "try $try failed ($(tail -n 1 "$work/err")); again in $((try * 2)) s"
  sleep $((try * 2)); try=$((try + 1))
done

got=$(stat -c %s "$work/file")
[ "$got" = "$size" ] || fail "$url has $got bytes and should have $size: not taken, what was there stays" \
  "the source is damaged or something on the way answers for it; check mirrors.encodings and proxy"
got=$(sha256sum <"$work/file" | cut -d' ' -f1)
[ "$got" = "$sha256" ] || fail "$url has the SHA-256 $got and should have $sha256: not taken, what was there stays" \
  "the source is damaged or something on the way answers for it; check mirrors.encodings and proxy"
# Others may write in the folder: the file is made again (-C), and from then on identified by its descriptor, not by its name.
find "$folder" -maxdepth 1 -type f -name "${path##*/}.*" -mmin +60 -delete
read -r name </proc/sys/kernel/random/uuid
set -C
# By `command`, dash does not end at an `exec` that cannot open its file.
{ command exec 9>"$path.$name"; } 2>/dev/null || fail "no file can be written in $folder" "look at the disk: df -h $folder"
set +C
new=$path.$name
cat "$work/file" >&9 && chown root:root /proc/self/fd/9 && chmod 0644 /proc/self/fd/9 && sync -d /proc/self/fd/9 && mv -fT "$new" "$path" ||
  fail "$path could not be written" "look at it, and at the disk: ls -ld $path; df -h $folder"
[ "$path" -ef /proc/self/fd/9 ] && [ ! -L "$path" ] || fail "another process put something else in the place of $path" "ls -ld $folder; run again"
# Without it a reading hashes the file itself.
mkdir -p "${mark%/*}" && printf '%s %s\n' "$sha256" "$(stat -c '%i:%s:%.Y:%.Z' "$path")" >"$mark.new" && mv -f "$mark.new" "$mark"
printf '%s\n' "$path: $size bytes, SHA-256 as published"
