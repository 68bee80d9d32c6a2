# A claim is written in one patch with the finalizer, before Do, and again when it has changed.
engine A B/claim | B claims annotate id=one | reconcile 2
    Do A, Do B -> patch, patch status => done, Ready
    object [ours] annotations [id:one]
    Do A, Do B => done
B claims annotate id=two | reconcile
    Do A, Do B -> patch => done
    object [ours] annotations [id:two]

# A claim that changes nothing costs no write.
object finalizers ours | engine A/claim | reconcile
    Do A -> patch status => done, Ready

# Without a claim the step is not done, and there is no finalizer: an error.
engine A/claim | A claims fail the owner is another one | reconcile
    -> patch status => failed
    Ready False TemporaryError: A: the owner is another one (Reconciling) (event)

# A wait.
engine A/claim | A claims wait the owner | reconcile
    -> patch status => waiting
    Ready False Waiting: waits for the owner (Reconciling)

# A change of the spec.
engine A/claim | A claims spec 1 | reconcile
    -> patch status => failed
    Ready False TerminalError: A: a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else (Stalled) (event)
    error: A: a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else; a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else

# A panic.
engine A/claim | A claims panic no | reconcile
    -> patch status => failed
    Ready False Panic: A: panic: no (Stalled) (event)

# A step that makes nothing needs no finalizer.
engine A/claim | A claims fail nothing to claim | reconcile
    Do A without the finalizer -> patch status => done, Ready

# A claim for an object that another client deletes at the same instant is followed by the cleanup.
engine A/claim | A claims annotate id=one | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours] annotations [id:one]
edit finalizers | delete | gone finalizers ours | reconcile
    Cleanup A without the finalizer => gone, it is gone

# An object of another operator is left alone, also when it goes.
object annotate operator=them | engine A/gate | reconcile 3
    => paused by AnotherOperator
    event AnotherOperator: reconciled by them
    2 times => paused by AnotherOperator
delete | gone finalizers ours; annotate operator=them | reconcile
    => gone, it is gone

# Also when it is being deleted.
object deleted; finalizers ours; annotate operator=them | engine A/gate | reconcile 3
    => paused by AnotherOperator
    event AnotherOperator: reconciled by them
    2 times => paused by AnotherOperator
edit finalizers | gone | reconcile
    => gone, it is gone

# It becomes ours.
object annotate operator=them | engine A/gate | reconcile
    => paused by AnotherOperator
    event AnotherOperator: reconciled by them
edit annotate operator=us | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours] annotations [operator:us]
