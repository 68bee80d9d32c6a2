# A condition that was healthy is unknown when its step fails, and healthy again when that passes.
engine A/Found | A does healthy Found Written | reconcile
    Do A -> patch status => done, Ready
    Found True Written
A does fail forbidden | reconcile 2
    Do A -> patch status => failed
    Ready False Forbidden: A: things.test.example.com "a" is forbidden: no permission (Stalled) (event)
    Found Unknown LastTryFailed: things.test.example.com "a" is forbidden: no permission
    Do A => failed
    error: A: things.test.example.com "a" is forbidden: no permission
A does | reconcile
    Do A -> patch status => done, Ready
    Found True LastTryPassed

# What a step says itself before it fails stays.
engine A/Found/Output | reconcile
    Do A -> patch status => done
    Ready False NotReached: Found: not evaluated yet (Reconciling)
    Found Unknown NotReached: not evaluated yet
    Output Unknown NotReached: not evaluated yet
A does healthy Found Found; unhealthy Output error Taken it is taken; fail first | reconcile
    Do A -> patch status => failed
    Ready False Taken: Output: it is taken (Stalled)
    Found True Found
    Output False Taken: it is taken
    event Taken: it is taken
    error: A: the first thing broke

# While its step waits, a condition stays as it was, and about its generation.
engine A/Found B/Output | A does healthy Found Fine | B does healthy Output Fine | reconcile
    Do A, Do B -> patch status => done, Ready
    Found True Fine
    Output True Fine
A does | B does wait x | edit spec 1 | reconcile
    Do A, Do B -> patch status => waiting
    object [] spec 1
    Ready False Waiting: waits for x (Reconciling)
    Output True Fine (of generation 1)
A does wait x | edit spec 2 | reconcile
    Do A -> patch status => waiting
    object [] spec 2
    Found True Fine (of generation 2)
A does | B does | reconcile
    Do A, Do B -> patch status => done, Ready
    Found True Fine
    Output True Fine

# Also while the step fails.
engine A/Found | A does healthy Found Fine | reconcile
    Do A -> patch status => done, Ready
    Found True Fine
A does fail first | edit spec 1 | reconcile
    Do A -> patch status => failed
    object [] spec 1
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    Found Unknown LastTryFailed: the first thing broke (of generation 1)
A does | reconcile
    Do A -> patch status => done, Ready
    Found True LastTryPassed

# What is unhealthy, and how that is summed up.
object generation 4 | engine A/Found | reconcile
    Do A -> patch status => done
    Ready False NotReached: Found: not evaluated yet (Reconciling)
    Found Unknown NotReached: not evaluated yet
A does unhealthy Found info NotFound there is no Secret | reconcile
    Do A -> patch status => done
    Ready False NotFound: Found: there is no Secret (Reconciling)
    Found False NotFound: there is no Secret
A does unhealthy Found warning NotFound there is no Secret | reconcile
    Do A => done
A does unhealthy Found error NotFound there is no Secret | reconcile
    Do A -> patch status => stalled
    Ready False NotFound: Found: there is no Secret (Stalled)
A does unhealthy Found error NotFound there is no Secret; fail first | reconcile
    Do A => failed
    error: A: the first thing broke
A does unhealthy Found info NotFound there is no Secret; wait Secret default/db | reconcile
    Do A -> patch status => waiting
    Ready False NotFound: Found: there is no Secret (Reconciling)
A does healthy Found Found | reconcile
    Do A -> patch status => done, Ready
    Found True Found
A does healthy Found Found; wait Secret default/db | reconcile
    Do A -> patch status => waiting
    Ready False Waiting: waits for Secret default/db (Reconciling)
A does healthy Found Found; fail first | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
A does healthy Found Found; fail terminal | reconcile
    Do A -> patch status => failed
    Ready False TerminalError: A: terminal error: the first thing broke (Stalled) (event)

# Conditions are initialised, those of others kept, and retired ones go.
object set Old=True; set example.com/Scanned=True | engine retired=Old,NeverThere,Found A/Found/Filled
A does wait Secret default/db | reconcile
    Do A -> patch status => waiting
    object []
    Ready False Waiting: waits for Secret default/db (Reconciling)
    Found Unknown NotReached: not evaluated yet
    Filled Unknown NotReached: not evaluated yet
    no Old

# It is not ready before all steps are reached.
engine A B | A does again 1m | reconcile
    Do A -> patch status => done, again after 1m0s
    Ready False Waiting: a step wants to be run again before the steps after it (Reconciling)
A does | B does again 1m | reconcile
    Do A, Do B -> patch status => done, Ready, again after 1m0s

# One event per transition.
engine A/Found | A does healthy Found Found | reconcile
    Do A -> patch status => done, Ready
    Found True Found
A does unhealthy Found warning NotFound there is no Secret | reconcile 2
    Do A -> patch status => done
    Ready False NotFound: Found: there is no Secret (Reconciling)
    Found False NotFound: there is no Secret
    event NotFound: there is no Secret
    Do A => done
A does unhealthy Found warning Empty there is no Secret | reconcile
    Do A -> patch status => done
    Ready False Empty: Found: there is no Secret (Reconciling)
    Found False Empty: there is no Secret
    event Empty: there is no Secret
A does unhealthy Found warning Empty there is no Secret; fail forbidden | reconcile
    Do A -> patch status => failed
    Ready False Forbidden: A: things.test.example.com "a" is forbidden: no permission (and 1 more) (Stalled) (event)
A does unhealthy Found warning Empty there is no Secret | reconcile
    Do A -> patch status => done
    Ready False Empty: Found: there is no Secret (Reconciling)
A does unhealthy Found info Pending there is no Secret | reconcile
    Do A -> patch status => done
    Ready False Pending: Found: there is no Secret (Reconciling)
    Found False Pending: there is no Secret
A does healthy Found Found | reconcile
    Do A -> patch status => done, Ready
    Found True Found
A does healthy Found Found; fail first | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
A does fail first | reconcile
    Do A -> patch status => failed
    Found Unknown LastTryFailed: the first thing broke
    error: A: the first thing broke
A does healthy Found Found; wait the bucket | reconcile
    Do A -> patch status => waiting
    Ready False Waiting: waits for the bucket (Reconciling)
    Found True Found

# There is none for what was not written.
engine A | A does fail first | fault patch status: conflict | reconcile
    Do A -> patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status, patch, patch status => failed
    error: A: the first thing broke; writing the status: Operation cannot be fulfilled on things.test.example.com "a": it was changed
no fault | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)

# A text is held for ten minutes, which does not hide that something else is wrong.
engine A | A does fail first | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
pass 1s | A does fail second | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the second thing broke (Reconciling)
pass 1s | A does fail third | reconcile
    Do A => failed
    error: A: the third thing broke
pass 10m | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the third thing broke (Reconciling)
pass 1s | A does fail quota | reconcile
    Do A -> patch status => failed
    Ready False Quota: A: the first thing broke (Reconciling) (event)
pass 1s | A does | reconcile
    Do A -> patch status => done, Ready

# Another of several comes through, also if only a number in a name tells them apart.
engine A | A does fail db-1 refuses the password | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: db-1 refuses the password (Reconciling) (event)
pass 1h | A does fail db-2 refuses the password | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: db-2 refuses the password (Reconciling)

# Another address.
engine A | A does fail 10.0.0.1 refuses the password | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: 10.0.0.1 refuses the password (Reconciling) (event)
pass 1h | A does fail 10.9.9.9 refuses the password | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: 10.9.9.9 refuses the password (Reconciling)

# Another of several after a short time is held for ten minutes.
engine A | A does fail db-1 at 10.0.0.1 refuses the password | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: db-1 at 10.0.0.1 refuses the password (Reconciling) (event)
pass 1m | A does fail db-2 at 10.9.9.9 refuses the password | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: db-2 at 10.9.9.9 refuses the password (Reconciling)
pass 10m | reconcile
    Do A => failed
    error: A: db-2 at 10.9.9.9 refuses the password

# A number is held for ten minutes.
engine A | A does fail volume 7 is full | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: volume 7 is full (Reconciling) (event)
pass 1h | A does fail volume 9 is full | reconcile
    Do A => failed
    error: A: volume 9 is full
pass 10m | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: volume 9 is full (Reconciling)

# A new text that is due is written, also beside a failure to save.
engine A | fault patch Thing: third | A does label size=7; fail first | reconcile
    Do A -> patch, patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    error: A: the first thing broke; writing the metadata: the third thing broke
pass 11m | A does label size=7; fail second | reconcile
    Do A -> patch, patch status => failed
    Ready False TemporaryError: A: the second thing broke (Reconciling)
    error: A: the second thing broke; writing the metadata: the third thing broke

# Conditions that a step sets on the object are declared ones, or its own.
engine A/Found | A does set Found=True | reconcile 2
    Do A -> patch status => done, Ready
    Found True Because: it is so
    Do A => done
A does set Found=False | reconcile 2
    Do A -> patch status => done
    Ready False Because: Found: it is so (Reconciling)
    Found False Because: it is so
    event Because: it is so
    Do A => done
A does set Found=Unknown | reconcile 2
    Do A -> patch status => done
    Found Unknown Because: it is so
    Do A => done

# One of its own.
engine A/Found | A does set Available=True | reconcile 2
    Do A -> patch status => done
    Ready False NotReached: Found: not evaluated yet (Reconciling)
    Found Unknown NotReached: not evaluated yet
    Available True Because: it is so (of generation 0)
    Do A => done

# Those that are computed are refused.
engine A/Found | A does set Ready=True | reconcile 2
    Do A -> patch status => failed
    Ready False TerminalError: a step has changed a field that the engine does not write: condition Ready is set on the object, but it is computed: declare a condition of another type and set that (Stalled) (event)
    Found Unknown NotReached: not evaluated yet
    Do A => failed
    error: a step has changed a field that the engine does not write: condition Ready is set on the object, but it is computed: declare a condition of another type and set that

# A reason that the API server would refuse costs nothing of what it says.
engine A/Found | A does healthy Found Fine | reconcile
    Do A -> patch status => done, Ready
    Found True Fine
A does unhealthy Found error quota-exceeded all 5 are used | reconcile
    Do A -> patch status => stalled
    Ready False QuotaExceeded: Found: quota-exceeded: all 5 are used (Stalled)
    Found False QuotaExceeded: quota-exceeded: all 5 are used
    event QuotaExceeded: quota-exceeded: all 5 are used

# Who panics is not Ready, whatever it has said before.
engine A/Found | A does healthy Found Fine | reconcile
    Do A -> patch status => done, Ready
    Found True Fine
A does healthy Found Better; healthy Missing Fine | reconcile
    Do A -> patch status => failed
    Ready False Panic: A: panic: condition: Missing is set but not declared: declare it (Stalled) (event)
    Found True Better
A does healthy Found Better; unhealthy Found error Taken it is taken; panic first | reconcile
    Do A -> patch status => failed
    Ready False Taken: Found: it is taken (Stalled)
    Found False Taken: it is taken
    event Taken: it is taken
    error: A: panic: the first thing broke
