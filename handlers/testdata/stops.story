# Stopped handlers are not called. A kind whose handlers are all gone comes back.
create map a
handle one map
handle two map
start
    one:a, two:a
stop one
change map a
    two:a
stop two
stop two
change map a
kinds
handle three map
    three:a

# Stop waits for calls that are running, whose context is not done.
create map a
handle slow map takes=1m
start
stop slow 1s
    error: context deadline exceeded
stop slow
    slow:a

# A handler that is stopped before the start is never called.
create map a
handle one map
stop one
handle two map
start
    two:a

# After the end of the manager nothing is registered, and Stop returns.
handle one map
start
end
handle two map
    error: registering handlers: the manager has stopped
stop one

# A handler is stopped while others wait for the list of its kind.
slow configmaps
install Project
create map a
handle related project owns=map
start
handle one map
stop related
wait 1m
    one:a
kinds
    ConfigMap Running

# All handlers are stopped while their kind is listed.
slow configmaps
handle one map
start
stop one
kinds
