# The finalizer is on selected objects. One that has it is cleaned up, also if not selected any more.
install Project
create project other
create project a size=x
handle one project removes selects=size
start quietly
finalizers a
    "example.com/one"
finalizers other
    ""
change project a size=
delete project other
delete project a
    one remove:a
finalizers a
    "-"

# The handler ends, as by a crash, after it has put its finalizer, and before OnRemove.
install Project
create project a
handle one project removes
start quietly
stop one
delete project a
finalizers a
    "example.com/one"
handle one project removes
    one remove:a
finalizers a
    "-"

# Who removes the finalizer by hand does not want OnRemove.
install Project
create project a
handle one project removes
start quietly
change project a finalizers= quietly
wait 1h
finalizers a
    ""
delete project a

# Handlers with OnRemove of one kind do not wait for each other.
install Project
create project a
handle fails project removes fails
handle two project removes
start quietly
finalizers a
    "example.com/fails example.com/two"
delete project a
    two remove:a
wait 1m
finalizers a
    "example.com/fails"
heal
wait 1h
    fails remove:a
finalizers a
    "-"

# Retiring takes one finalizer off all objects, and no other. Twice is once.
install Project
create project foreign finalizers=example.com/foreign
create project a
create project c
handle one project removes
handle two project removes
start quietly
finalizers foreign
    "example.com/foreign example.com/one example.com/two"
retire one quietly
retire one
finalizers foreign
    "example.com/foreign example.com/two"
delete project a
    two remove:a
finalizers a
    "-"
handle one project removes quietly
finalizers c
    "example.com/one example.com/two"

# What is in no cache is found: handlers that were never started, objects that are not selected.
install Project
create project a finalizers=example.com/one,example.com/foreign
create project b finalizers=example.com/one,example.com/foreign
handle one project removes selects=nothing
delete project b
stop one
retire one
finalizers a
    "example.com/foreign"
finalizers b
    "example.com/foreign"

# The kind of a handler that is retired may be missing.
handle one project removes
start quietly
retire one
kinds
