# A login is compared by a salted digest that the host makes: the login itself never leaves this shell.
printf 'salt=%s\n' "$(cat /etc/machine-id 2>/dev/null || echo none)"
if [ -f "$config" ]; then
  printf 'mode=%s\n' "$(stat -c %a:%U "$config")"
  # Texts in JSON hold no raw line breaks, and no name or login holds a blank: all blanks can go.
  json=$(tr -d ' \t\r\n' <"$config")
  name=$(printf %s "$registry" | sed 's/[.]/[.]/g')
  auth=$(printf %s "$json" | grep -o "\"$name\":{[^{}]*}" | head -n 1 | sed -n 's/.*"auth":"\([^"]*\)".*/\1/p')
  helper=$(printf %s "$json" | sed -n "s,.*\"$name\":\"\([^\"]*\)\".*,\1,p")
  [ -n "$helper" ] || helper=$(printf %s "$json" | sed -n 's/.*"credsStore":"\([^"]*\)".*/\1/p')
  [ -z "$helper" ] || printf 'helper=%s\n' "$helper"
  [ -z "$auth" ] || printf 'digest=%s\n' "$(printf %s%s "$(cat /etc/machine-id 2>/dev/null || echo none)" "$auth" | sha256sum | cut -d' ' -f1)"
fi
