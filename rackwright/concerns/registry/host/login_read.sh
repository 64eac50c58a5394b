# A login is compared by a salted digest that the host makes: the login itself never leaves this shell.
# Parameters: config registry.
salt=none
[ ! -r /etc/machine-id ] || read -r salt </etc/machine-id
printf '%s\n' "salt=$salt"
text_of() { # a text of JSON after its key: sets `text`, empty without one
  text=
  case $1 in *"$2:\""*) text=${1#*"$2:\""} text=${text%%'"'*} ;; esac
}
if [ -f "$config" ]; then
  printf '%s\n' "mode=$(stat -L -c %a:%U "$config")"
  # Texts in JSON hold no raw line breaks, and no name or login holds a blank: all blanks can go.
  json=$(tr -d ' \t\r\n' <"$config")
  auth=
  case $json in *"\"$registry\":{"*)
    own=${json#*"\"$registry\":{"}
    text_of "${own%%[\{\}]*}" '"auth"'; auth=$text ;;
  esac
  text_of "$json" "\"$registry\""
  [ -n "$text" ] || text_of "$json" '"credsStore"'
  [ -z "$text" ] || printf '%s\n' "helper=$text"
  if [ -n "$auth" ]; then
    digest=$(printf %s "$salt$auth" | sha256sum)
    printf '%s\n' "digest=${digest%% *}"
  fi
fi
