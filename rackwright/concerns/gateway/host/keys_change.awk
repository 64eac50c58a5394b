# Prints a map with the rows of the first file carried out: `revoke CLIENT`, `gone HASH`, `client CLIENT` (its limits and models are
# given anew), `put MAP KEY VALUE`. The second file is the map. Variable: map. `revoked` prints the hashes of the map `keys` that go,
# `had` its rows.
FNR == 1 { file++ }
file == 1 {
  if ($1 == "revoke") { revoked[$2]; cleared[$2] }
  else if ($1 == "client") cleared[$2]
  else if ($1 == "gone") { goes[$2]; if (map == "revoked") print $2 }
  else if ($1 == "put" && $2 == map) value[$3] = $4
  next
}
NF != 2 { next }
map == "had" { if ($2 in revoked || $1 in goes) print; next }
map == "revoked" { if ($2 in revoked) print $1; next }
{
  client = $1
  sub(/\/.*/, "", client)
  if (map == "keys") is_gone = $2 in revoked || $1 in goes
  else if (map == "expiries") is_gone = $1 in goes
  else is_gone = client in cleared
  if (!is_gone && !($1 in value)) print
}
END { for (key in value) print key, value[key] }
