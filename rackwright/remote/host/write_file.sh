# Replace a file atomically. Parameters: path mode owner. Standard input: its content, base64.
#include behind.sh
umask 077
path=$(behind "$path") || exit 1
[ -d "${path%/*}" ] || mkdir -p -m 0755 "${path%/*}" || exit 1
new=$(mktemp "$path.XXXXXXXX") || exit 1
if base64 -d >"$new" && chown "$owner" "$new" && chmod "$mode" "$new" && sync "$new" && mv -fT "$new" "$path" && sync "${path%/*}"; then exit 0; fi
rm -f "$new"
exit 1
