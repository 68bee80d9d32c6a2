# A stale cache is waited for, and what it misses is not written again.
engine A | A does size 7 | lag | reconcile
    Do A -> patch status => done, Ready
    object [] status 7
reconcile | pass 1s | reconcile
    => stale, again after 1s
    => stale, again after 1s
catch up | reconcile
    Do A => done

# It is not awaited for ever, and the resource version keeps it from doing harm.
engine A | A does grow | lag | reconcile
    Do A -> patch status => done, Ready
    object [] status 1
pass 10s | reconcile
    => stale, again after 1s
pass 1ns | A does size 2 | reconcile
    Do A -> patch status, patch => failed, silently, again soon
    error: writing the status: another client has also changed .status.size: Operation cannot be fulfilled on things.test.example.com "a": object was modified

# It does not know that the object is gone.
object deleted; finalizers ours | engine A/clean | lag | reconcile
    Cleanup A -> patch => deleted, it is gone
reconcile
    => stale, again after 1s
pass 11s | reconcile
    Cleanup A without the finalizer -> patch => deleted, again after 5s
catch up | reconcile
    => gone

# A cache is waited for from the write on, however long the reconcile has taken before it.
engine A | A does pass 2m; grow | lag | reconcile 2
    Do A -> patch status => done, Ready
    object [] status 1
    event StepLate: Do of A has been running for 1m0s; it is canceled after 5m0s
    => stale, again after 1s

# Another object of the name is not one that the cache is stale with.
engine A | reconcile
    Do A -> patch status => done, Ready
delete | create uid uid-b | lag | reconcile
    Do A -> patch status => done

# A fence keeps an old object from writing children. After that nothing is read live.
engine live A | A does create child | lag | edit label color=blue | reconcile 2
    Do A -> live get => waiting, again after 1s
    object [] labels [color:blue]
    Do A => waiting, again after 1s
catch up | reconcile 5
    Do A -> create child, patch status => done, Ready
    4 times Do A -> create child => done
engine live A | A does | reconcile
    Do A => done

# A step that ignores the wait of the fence does not make a stale object idle.
engine live skip A | A does ignore create child | lag | edit label color=blue | reconcile 3
    Do A -> live get => done, again after 1s
    object [] labels [color:blue]
    2 times Do A => done, again after 1s

# The fence of an object that is gone.
engine live A | A does create child | lag | delete | reconcile
    Do A -> live get => waiting, again after 1s, it is gone

# The fence can't ask.
engine live A | A does create child | fault live get: first | reconcile
    Do A -> live get, patch status => failed
    Ready False TemporaryError: A: asking whether the cache is up to date: the first thing broke (Reconciling) (event)
no fault | reconcile
    Do A -> create child, patch status => done, Ready

# The write of the finalizer is a fence.
engine live A/clean | A does create child | reconcile
    Do A -> patch, create child, patch status => done, Ready
    object [ours]

# Nothing is made outside for an object that the API server does not have any more.
object finalizers ours | engine live A/external | lag | release | delete | reconcile
    -> live get => waiting, again after 1s, it is gone

# It is when the cache is up to date.
object finalizers ours | engine live A/external | reconcile
    Do A -> live get, patch status => done, Ready

# What is outside is removed before the finalizer goes.
object deleted; finalizers ours | engine A/external | A cleans fail the bucket is not empty | reconcile
    Cleanup A -> patch status => failed
    Ready False TemporaryError: cleaning up: A: the bucket is not empty (Reconciling) (event)
A cleans | reconcile
    Cleanup A -> patch => deleted, it is gone

# What a reconcile has created is in the cache before the next one looks.
engine A | A does keep child | reconcile
    Do A -> create child, patch status => done, Ready
fault get ConfigMap child: missing | reconcile
    => stale, again after 1s
no fault | reconcile
    Do A => done

# A child that does not come is not waited for much longer.
engine A | A does keep child | reconcile
    Do A -> create child, patch status => done, Ready
child delete child | reconcile
    => stale, again after 1s
pass 1s | reconcile
    => stale, again after 1s
pass 2s | reconcile
    Do A -> create child => done

# Nor one that is applied.
engine A | A does keep child by apply | reconcile
    Do A -> patch status => done, Ready
fault get ConfigMap child: missing | reconcile
    => stale, again after 1s
no fault | reconcile
    Do A => done
