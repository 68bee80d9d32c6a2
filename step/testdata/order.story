# All pass. An error of a Post ends nothing.
engine A/clean/post B/clean/post C/clean/post | B posts fail third | reconcile
    Do A, Do B, Do C, Post A, Post B, Post C -> patch, patch status => failed
    object [ours]
    Ready False TemporaryError: B: the third thing broke (Reconciling) (event)
B posts | delete | B cleans fail second | reconcile
    Cleanup C, Cleanup B, (failed), Post A, (failed), Post B, (failed), Post C -> patch status => failed
    Ready False TemporaryError: cleaning up: B: the second thing broke (Reconciling)
B cleans panic no | reconcile
    Cleanup C, Cleanup B, (failed), Post A, (failed), Post B, (failed), Post C -> patch status => failed
    Ready False Panic: cleaning up: B: panic: no (Stalled) (event)
B cleans wait the bucket to be empty | reconcile
    Cleanup C, Cleanup B, Post A, Post B, Post C -> patch status => waiting
    Ready False CleaningUp: cleaning up: waits for the bucket to be empty (Reconciling)
B cleans | reconcile
    Cleanup C, Cleanup B, Cleanup A, Post A, Post B, Post C -> patch => deleted, it is gone

# The second does not pass, and the first neither. Both say the soonest time.
engine A/post B/post C/post | B does fail second | reconcile
    Do A, Do B, (failed), Post A, (failed), Post B, (failed), Post C -> patch status => failed
    Ready False TemporaryError: B: the second thing broke (Reconciling) (event)
A does fail first | reconcile
    Do A, (failed), Post A, (failed), Post B, (failed), Post C -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling)
A does wait Secret default/db | reconcile
    Do A, Post A, Post B, Post C -> patch status => waiting
    Ready False Waiting: waits for Secret default/db (Reconciling)
A does again 1m | reconcile
    Do A, Post A, Post B, Post C -> patch status => done, again after 1m0s
    Ready False Waiting: a step wants to be run again before the steps after it (Reconciling)
A does exit | reconcile
    Do A, Post A, Post B, Post C -> patch status => done, Ready
A does panic no | reconcile
    Do A, (failed), Post A, (failed), Post B, (failed), Post C -> patch status => failed
    Ready False Panic: A: panic: no (Stalled) (event)
A does continue 1m | B does | reconcile
    Do A, Do B, Do C, Post A, Post B, Post C -> patch status => done, Ready, again after 1m0s

# What a reconcile returns.
engine A | reconcile
    Do A -> patch status => done, Ready
A does continue 1m | reconcile
    Do A => done, again after 1m0s
A does wait Secret default/db | reconcile
    Do A -> patch status => waiting
    Ready False Waiting: waits for Secret default/db (Reconciling)
A does poll the bucket | reconcile
    Do A -> patch status => waiting, again after 3s
    Ready False Waiting: waits for the bucket (Reconciling)
A does exit | reconcile
    Do A -> patch status => done, Ready
A does requeue | reconcile
    Do A => done, again after 1s
A does fail first | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)

# The soonest time counts.
engine A ordered(B C) D | A does continue 1h | B does continue 1m | C does continue 1s
D does continue 1h | reconcile
    Do A, Do B, Do C, Do D -> patch status => done, Ready, again after 1s

# An object that is gone is not reconciled.
no object | engine A/clean/post | reconcile
    => gone

# A group runs all, and what follows is reached when all have passed.
engine ordered(A/post B/post C/post) D/post | A does fail first | B does wait x | reconcile
    Do A, Do B, Do C, (failed), Post A, (failed), Post B, (failed), Post C, (failed), Post D -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
A does wait x | B does | reconcile
    Do A, Do B, Do C, Post A, Post B, Post C, Post D -> patch status => waiting
    Ready False Waiting: waits for x (Reconciling)
A does | reconcile
    Do A, Do B, Do C, Do D, Post A, Post B, Post C, Post D -> patch status => done, Ready

# Errors of a group are joined with those of Post and of the write.
engine ordered(A/post B/post) | A does fail first | B does fail second | B posts fail third
fault patch status: the disk is full | reconcile
    Do A, Do B, (failed), Post A, (failed), Post B -> patch status => failed
    error: A: the first thing broke; B: the second thing broke; B: the third thing broke; writing the status: the disk is full

# Also those of a cleanup, of which a group runs all.
object deleted; finalizers ours | engine A/clean ordered(B/clean/post C/clean/post) D/clean
C cleans fail first | B cleans fail second | C posts fail third
fault patch status: the disk is full | reconcile
    Cleanup D, Cleanup C, Cleanup B, (failed), Post B, (failed), Post C -> patch status => failed
    error: C: the first thing broke; B: the second thing broke; C: the third thing broke; writing the status: the disk is full
no fault | B cleans | C cleans | C posts | reconcile
    Cleanup D, Cleanup C, Cleanup B, Cleanup A, Post B, Post C -> patch => deleted, it is gone

# When holds.
engine always(A B) C | reconcile
    Do A, Do B, Do C -> patch status => done, Ready
A does wait x | reconcile
    Do A -> patch status => waiting
    Ready False Waiting: waits for x (Reconciling)

# When does not hold, and an inner one.
engine never(A) C always(D never(E) F) never(G always(H)) | A does fail first | reconcile
    Do C, Do D, Do F -> patch status => done, Ready

# Conditions of several depths do not mix.
engine always(never(A) always(B)) always(always(always(always(C) never(D)))) | reconcile
    Do B, Do C -> patch status => done, Ready

# The cleanup is for all, also where When does not hold.
object deleted; finalizers ours | engine A/clean never(B/clean C/clean) | reconcile
    Cleanup C, Cleanup B, Cleanup A -> patch => deleted, it is gone

# Nothing at all.
engine group() ordered() always() | reconcile
    -> patch status => done, Ready

# Conditions of steps that are not needed.
engine sized(A/Found/Degraded) | A does fail first | reconcile
    -> patch status => done, Ready
    Found True NotNeeded
    Degraded False NotNeeded
edit spec 1 | reconcile
    Do A -> patch status => failed
    object [] spec 1
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    Found Unknown LastTryFailed: the first thing broke (of generation 1)
    Degraded Unknown LastTryFailed: the first thing broke (of generation 1)
edit spec 0 | reconcile
    -> patch status => done, Ready
    object []
    Found True NotNeeded
    Degraded False NotNeeded

# All waits of a group are named, each once.
engine ordered(A B C) | A does wait Secret default/db | B does wait Secret default/db | C does wait the bucket
reconcile
    Do A, Do B, Do C -> patch status => waiting
    Ready False Waiting: waits for Secret default/db; the bucket (Reconciling)

# What can't be read is not reconciled, and the error says what was being done.
engine A/clean/post | fault get Thing: first | reconcile
    => failed
    error: reading Thing default/a: the first thing broke
