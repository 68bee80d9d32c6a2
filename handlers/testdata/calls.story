# Handlers are called for changes, and a new one for what exists.
create map a
handle one map gone
handle two map
start
    one:a, two:a
create map b
    one:b, two:b
change map a
    one:a, two:a
delete map a
    one gone:a
handle late map
    late:b
wait 1h

# One failure has no other handler called again.
create map a
handle failing map fails
handle fine map
start
    fine:a
wait 1m
heal
wait 1m
    failing:a
wait 1h

# Times belong to one handler.
create map a
handle poll map every=1m
handle other map
start
    other:a, poll:a
wait 3m
    poll:a, poll:a, poll:a
wait 30s
change map a
    other:a, poll:a
wait 59s
wait 1s
    poll:a

# Paused objects are left alone.
create map a annotation=ctrlkit.dev/paused:true
create map b
handle one map
start
    one:b
change map a annotation=
    one:a

# Only selected objects are shown.
create map a label=app:x
create map b
handle one map selects=app
start
    one:a

# Enqueue calls all handlers, now or later.
create map a
enqueue a
    ErrNoHandler
handle one map
handle two map
start
    one:a, two:a
enqueue a
    one:a, two:a
enqueue a 1m
wait 59s
wait 1001ms
    one:a, two:a

# A resync is for who wants it, with and without a finalizer.
resync 1m
create map a
handle wants map resync
handle removes map resync removes
handle does-not map
handle removes-only map removes
start quietly
wait 90s
    removes:a, wants:a

# The period holds also where another one uses the informer, which client-go does not shorten.
resync 1m
create map a
start
informer
handle one map resync
    one:a
wait 1s
wait 1m
    one:a
wait 1m
    one:a
