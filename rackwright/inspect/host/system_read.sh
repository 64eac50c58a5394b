# Print this host's system, as ID-VERSION-ARCHITECTURE in dpkg's words; what is missing stays empty.
[ -r /etc/os-release ] && . /etc/os-release
printf '%s\n' "system ${ID:-}-${VERSION_ID:-}-$(dpkg --print-architecture 2>/dev/null)"
