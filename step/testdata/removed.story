# Our finalizer is removed while the cleanup fails: that is a decision, and the successor is free.
engine A/clean | A cleans fail first | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
delete | reconcile
    Cleanup A -> patch status => failed
    Ready False TemporaryError: cleaning up: A: the first thing broke (Reconciling) (event)
release | gone | reconcile 2
    => gone, it is gone
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": the object is gone, and nothing is cleaned up
    => gone
create uid uid-b | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]

# The object goes before the event comes.
engine A/clean | A cleans fail first | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
delete | reconcile
    Cleanup A -> patch status => failed
    Ready False TemporaryError: cleaning up: A: the first thing broke (Reconciling) (event)
release | reconcile
    => waiting, again after 1s, it is gone
gone | reconcile
    => gone
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": the object is gone, and nothing is cleaned up

# Beside a foreign finalizer, also after a restart.
object finalizers foreign | engine A/clean | A cleans fail first | reconcile
    Do A -> patch, patch status => done, Ready
    object [foreign ours]
delete | reconcile
    Cleanup A -> patch status => failed
    Ready False TemporaryError: cleaning up: A: the first thing broke (Reconciling) (event)
release | reconcile 3
    -> patch status => deleted
    object [foreign]
    Ready False FinalizerRemoved: it is being deleted, another client has removed our finalizer "test.example.com/things", so nothing is cleaned up, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": the object is being deleted, and nothing is cleaned up
    2 times => deleted
engine A/clean | reconcile
    => deleted
edit finalizers | gone | reconcile
    => gone, it is gone

# Before the cleanup began.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
delete | release | gone | reconcile
    => gone, it is gone
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": the object is gone, and nothing is cleaned up

# The cache does not know it yet.
object finalizers foreign | engine live A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [foreign ours]
delete | lag | release | reconcile
    -> live get => stale, again after 1s
    object [foreign]
catch up | reconcile
    -> patch status => deleted
    Ready False FinalizerRemoved: it is being deleted, another client has removed our finalizer "test.example.com/things", so nothing is cleaned up, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": the object is being deleted, and nothing is cleaned up

# From a living object: it stays removed, also after a restart, and is taken back with the annotation.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | reconcile 3
    Do A without the finalizer -> patch => done
    object [] annotations [ctrlkit.dev/finalizer-removed:ours]
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": it is not put back, and nothing will be cleaned up when the object is deleted. To have it back, remove the annotation ctrlkit.dev/finalizer-removed
    2 times Do A without the finalizer => done
engine A/clean | reconcile
    Do A without the finalizer => done
edit unannotate ctrlkit.dev/finalizer-removed | reconcile
    Do A -> patch => done
    object [ours]
delete | reconcile
    Cleanup A -> patch => deleted, it is gone

# Such an object is deleted without a cleanup.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | reconcile
    Do A without the finalizer -> patch => done
    object [] annotations [ctrlkit.dev/finalizer-removed:ours]
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": it is not put back, and nothing will be cleaned up when the object is deleted. To have it back, remove the annotation ctrlkit.dev/finalizer-removed
delete | gone | reconcile
    => gone, it is gone

# It is taken back by putting the finalizer there.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | reconcile
    Do A without the finalizer -> patch => done
    object [] annotations [ctrlkit.dev/finalizer-removed:ours]
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": it is not put back, and nothing will be cleaned up when the object is deleted. To have it back, remove the annotation ctrlkit.dev/finalizer-removed
edit finalizers ours | reconcile
    Do A -> patch => done
    object [ours]

# The annotation can't be written at first.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | fault patch Thing: first | reconcile
    Do A without the finalizer -> patch, patch status => failed
    object []
    Ready False TemporaryError: writing the metadata: the first thing broke (Reconciling) (event)
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": it is not put back, and nothing will be cleaned up when the object is deleted. To have it back, remove the annotation ctrlkit.dev/finalizer-removed
no fault | reconcile
    Do A without the finalizer -> patch, patch status => done, Ready
    object [] annotations [ctrlkit.dev/finalizer-removed:ours]

# A cache that is older than the write of the finalizer shows no removal.
engine A/clean | lag | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
pass 1m | reconcile
    -> patch, patch => waiting, again after 1s
catch up | reconcile
    Do A => done

# The last state of an object that went at once has our finalizer: it is cleaned up, once, from that.
no object | engine A/clean | gone finalizers ours; spec 42 | reconcile 2
    Cleanup A without the finalizer => gone
    => gone

# It has it not.
no object | engine A/clean | gone uid uid-a | reconcile 2
    2 times => gone

# It has that of another.
no object | engine A/clean | gone finalizers foreign | reconcile 2
    2 times => gone

# It is paused, and its finalizer was removed.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
edit finalizers; annotate ctrlkit.dev/paused=true | delete | gone annotate ctrlkit.dev/paused=true
reconcile 2
    => gone, it is gone
    => gone

# It was put there, and another client removed it.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | delete | gone uid uid-a | reconcile 2
    => waiting, again after 1s, it is gone
    => waiting, again after 1s

# The write of the finalizer never arrived.
engine A/clean | fault patch Thing: first | reconcile
    -> patch, patch status => failed
    Ready False TemporaryError: putting finalizer "test.example.com/things" on the object: the first thing broke (Reconciling) (event)
no fault | delete | gone uid uid-a | reconcile 2
    => waiting, again after 1s, it is gone
    => waiting, again after 1s

# It was cleaned up before.
object finalizers ours | engine A/clean | delete | reconcile
    Cleanup A -> patch => deleted, it is gone
gone finalizers ours | reconcile 2
    2 times => gone

# A successor waits for the cleanup of the object before, and says so; that is tried until it passes.
object uid uid-b | engine A/clean | gone finalizers ours | A cleans wait the bucket to be empty
reconcile
    Cleanup A without the finalizer -> patch status => waiting, again after 30s
    Ready False PredecessorNotCleanedUp: an object of this name with UID uid-a was deleted, and its cleanup is not done: it waits for the bucket to be empty (Reconciling) (event)
A cleans fail first | reconcile 2
    Cleanup A without the finalizer -> patch status => failed
    Ready False PredecessorNotCleanedUp: an object of this name with UID uid-a was deleted, and its cleanup is not done: A: the first thing broke (Reconciling)
    Cleanup A without the finalizer => failed
    error: A: the first thing broke
A cleans panic a bug | reconcile
    Cleanup A without the finalizer -> patch status => failed
    Ready False PredecessorNotCleanedUp: an object of this name with UID uid-a was deleted, and its cleanup is not done: A: the first thing broke
    Stalled True PredecessorNotCleanedUp: an object of this name with UID uid-a was deleted, and its cleanup is not done: A: panic: a bug
A cleans | reconcile 2
    Cleanup A without the finalizer, Do A -> patch, patch status => done, Ready
    object [ours]
    no Stalled
    Do A => done

# The cleanup after a lost object may write beside a fence.
no object | engine live A/clean | child create child | A cleans drop child | gone finalizers ours
reconcile
    Cleanup A without the finalizer -> delete child => gone

# Another object of the name is another object.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
delete | reconcile
    Cleanup A -> patch => deleted, it is gone
create uid uid-b | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
edit finalizers | delete | gone uid uid-b; finalizers ours | reconcile
    Cleanup A without the finalizer => gone, it is gone

# An object that was replaced while the watch was interrupted is cleaned up.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | delete | create uid uid-b | replaced | reconcile 2
    Cleanup A without the finalizer, Do A -> patch, patch status => done
    Do A => done

# It was being deleted when it was replaced: that is done.
engine A/clean | reconcile
    Do A -> patch, patch status => done, Ready
    object [ours]
release | delete | create uid uid-b | replaced deleted | reconcile 2
    Do A -> patch, patch status => done
    event FinalizerRemoved: another client has removed finalizer "test.example.com/things": the object is gone, and nothing is cleaned up
    Do A => done

# The final state is not known, and the answer to the write of the finalizer was lost.
engine A/clean | fault patch Thing: first | reconcile
    -> patch, patch status => failed
    Ready False TemporaryError: putting finalizer "test.example.com/things" on the object: the first thing broke (Reconciling) (event)
no fault | delete | gone-unknown | reconcile
    Cleanup A without the finalizer => gone, it is gone
