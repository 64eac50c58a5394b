"""Pull files from the first source that answers, and hand every verified piece on while the rest still arrives.

It runs on a host with its python3, or in the serving image, packed as one file; no module here may import the rest of
Rackwright except `hostside/quiet_disk`, or need more than Python 3.9. Layout on the host:

    FOLDER/.parts/NAME.part    a file that is not whole yet: always a prefix of it, one piece after the other
    FOLDER/.parts/lock         held by the one program that fills the folder, also by `fetch_model`
    FOLDER/PATH                moved there in one step, when its SHA-256 is the published one

A piece is a MiB. The first host, which fetches from the hub, writes down the SHA-256 of each while it receives; others
hold what they receive against that list, which every host signs by HMAC with the run's token. Neither makes a file
count: only its published SHA-256 does.

Between hosts HTTP/1.1 is spoken: `GET /files/PATH` with `Range: bytes=N-` answers 206 with as many pieces as are
here, or 503 with `Retry-After` and why. A request is signed by HMAC of the connection's nonce; the token itself is
never sent. One host is served at a time, so that a host's link is never divided: the others are answered "busy", and
look for another source.
"""
