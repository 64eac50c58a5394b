# A program for awk that counts the requests which are open on connections, as `ss -tinHO` shows them. Variables (-v): `looks`, the
# number of looks before this one, and `connections`, the file in which one look leaves its connections for the next: a shell
# takes minutes to cut ten thousand of them, and an environment does not hold them.
# A connection has an open request when its last byte came from the client, as during a prefill, or when an answer that
# needs more than one look sent its last byte less than 20 s ago. An idle keep-alive and a monitor's scrape have none.
# Prints how many requests are open, how many connections there are, how many of them get an answer in parts, and the bytes that
# were sent on all of them. A row in the file: client, bytes sent, bytes received, and 1 for an answer in parts. ss leaves out what is 0 (man 8 ss).
requests_of='
  BEGIN { while ((getline row < connections) > 0) if (split(row, f, " ")) { sent[f[1]] = f[2]; received[f[1]] = f[3]; parts[f[1]] = f[4] }
    close(connections); printf "" > connections }
  function of(name) { return match($0, " " name ":[0-9]+") ? substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) + 0 : 0 }
  { client = $4; s = of("bytes_sent"); r = of("bytes_received"); quiet = of("lastsnd"); recent = quiet < 20000
    p = client in sent ? parts[client] : looks == 0 && r && recent
    if (client in sent && r > received[client]) p = 0; else if (client in sent && s > sent[client]) p = 1
    open += r && (!s || of("lastrcv") <= quiet || p && recent)
    all++; bytes += s; streams += s && p && recent; print client, s, r, p + 0 > connections }
  END { print open + 0, all + 0, streams + 0, bytes + 0 }'
