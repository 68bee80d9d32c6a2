# An owned object leads to its owner, also by another version, and to the one before.
install Project
create project a
create project b
handle one project owns=secret
handle other project
start
    one:a, one:b, other:a, other:b
create secret s owner=a@v1beta1
    one:a
create secret unrelated
change secret s owner=b@v1
    one:a, one:b
delete secret s
    one:b

# A label leads to an object, also when it is gone.
install Project
create project a
create project b
handle one project labeled=secret:project
handle other project
start
    one:a, one:b, other:a, other:b
create secret s label=project:a
    one:a
change secret s label=
    one:a

# A function leads to some objects, each of them once.
install Project
create project a
create project b
handle one project related
handle other project
start
    one:a, one:b, other:a, other:b
create secret s
    one:a, one:b

# What an object names leads to it.
install Project
create project a
create project b
handle one project names
handle other project
start
    one:a, one:b, other:a, other:b
create secret s
change project a secret=s
    one:a, other:a
change secret s
    one:a

# A related change does not wait for the backoff of a failure, which it may have healed.
install Project
create project a
handle one project labeled=secret:project fails
start
wait 1h
heal
create secret s label=project:a
    one:a

# A related kind may come later than the handler: then what exists is news.
create map a
handle one map labeled=project:map
start
    one:a
install Project
create project p label=map:a
wait 10s
    one:a

# A handler comes for a kind that is being listed because it is related.
slow configmaps
create map a
handle related project owns=map
install Project
start
handle one map
wait 1m
    one:a
