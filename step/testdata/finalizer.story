# The finalizer comes before every Do, in one write.
engine A B/clean | B does size 7 | reconcile 2
    Do A, Do B -> patch, patch status => done, Ready
    object [ours] status 7
    Do A, Do B => done

# A finalizer can be named, and one from the creation is adopted.
object finalizers example.com/named | engine finalizer=example.com/named A/clean | reconcile
    Do A -> patch status => done, Ready

# Only who cleans up needs one.
engine A never(B/clean always(C/clean)) | reconcile
    Do A -> patch status => done, Ready

# It stays where it is not wanted any more.
object finalizers ours | engine never(B/clean) | reconcile
    -> patch status => done, Ready

# Others are left alone, and a group, a condition and a step that is reached later want one.
object finalizers foreign | engine A statusSize(group(B/clean)) | A does size 7 | reconcile 2
    Do A, Do B -> patch, patch status => done, Ready
    object [foreign ours] status 7
    Do A, Do B => done

# A step may keep finalizers of its own.
engine A/clean | A does hold | reconcile
    Do A -> patch, patch, patch status => done, Ready
    object [ours foreign]
A does | reconcile
    Do A => done

# No Do without the finalizer: a conflict is silent.
engine A/clean/post | fault patch Thing: conflict | reconcile
    (failed), Post A -> patch, patch => failed, silently, again soon
    error: putting finalizer "test.example.com/things" on the object: Operation cannot be fulfilled on things.test.example.com "a": it was changed; reading the newest version: Operation cannot be fulfilled on things.test.example.com "a": it was changed
no fault | reconcile
    Do A, Post A -> patch, patch status => done, Ready
    object [ours]

# No Do without the finalizer: any other failure is not.
engine A/clean/post | fault patch Thing: forbidden | reconcile
    (failed), Post A -> patch, patch status => failed
    Ready False Forbidden: putting finalizer "test.example.com/things" on the object: things.test.example.com "a" is forbidden: no permission (Stalled) (event)
no fault | reconcile
    Do A, Post A -> patch, patch status => done, Ready
    object [ours]

# The cleanup ends with the finalizer, and writes nothing that no client would read.
object deleted; finalizers ours | engine K/Found A/clean | A cleans size 7 | reconcile 2
    Cleanup A -> patch => deleted, it is gone
    => gone

# A cleanup that fails keeps the finalizer.
object deleted; finalizers ours | engine Never/clean A/clean | A cleans fail first | reconcile 2
    Cleanup A -> patch status => failed
    Ready False TemporaryError: cleaning up: A: the first thing broke (Reconciling) (event)
    Cleanup A => failed
    error: A: the first thing broke

# So does one that waits.
object deleted; finalizers ours | engine Never/clean A/clean | A cleans wait the bucket to be empty
reconcile 2
    Cleanup A -> patch status => waiting
    Ready False CleaningUp: cleaning up: waits for the bucket to be empty (Reconciling)
    Cleanup A => waiting

# So does one that wants to be run again.
object deleted; finalizers ours | engine Never/clean A/clean | A cleans again 1m | reconcile 2
    Cleanup A -> patch status => waiting, again after 1m0s
    Ready False CleaningUp: cleaning up: the cleanup continues (Reconciling)
    Cleanup A => waiting, again after 1m0s

# One that exits ends the cleanup, and the cleanups after it are not done.
object deleted; finalizers ours | engine Never/clean A/clean | A cleans exit | reconcile
    Cleanup A -> patch status => waiting
    Ready False CleaningUp: cleaning up: the cleanup continues (Reconciling)

# One that continues interrupts nothing.
object deleted; finalizers ours | engine First/clean A/clean | A cleans continue 1m | reconcile
    Cleanup A, Cleanup First -> patch => deleted, it is gone

# A failure of Post does not keep the object.
object deleted; finalizers ours | engine A/clean/post | A posts fail first | reconcile
    Cleanup A, Post A -> patch => failed, it is gone
    error: A: the first thing broke

# Nor does a Post that waits, which for a living object is a wait.
engine A/clean/post | A posts poll the replicas to drain | reconcile
    Do A, Post A -> patch, patch status => waiting, again after 3s
    object [ours]
    Ready False Waiting: waits for the replicas to drain (Reconciling)
delete | reconcile
    Cleanup A, Post A -> patch => deleted, again after 3s, it is gone

# Other finalizers keep the object, in no hot loop, and it is cleaned up once, also after a restart.
object deleted; finalizers foreign ours | engine A/clean/post | reconcile 20
    Cleanup A, Post A -> patch, patch status => deleted
    object [foreign]
    Ready False CleanedUp: it is being deleted, our cleanup is done, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)
    19 times Post A => deleted
engine A/clean/post | reconcile
    Post A => deleted
edit finalizers | gone | reconcile
    => gone, it is gone

# An object without our finalizer is not cleaned up.
object deleted; finalizers foreign | engine A/clean/post | reconcile 2
    Post A -> patch status => deleted
    Ready False Deleting: it is being deleted, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)
    Post A => deleted

# A deletion without a Cleaner is that of others.
object deleted; finalizers foreign | engine A | reconcile
    -> patch status => deleted
    Ready False Deleting: it is being deleted, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)

# The finalizer can't be removed.
object deleted; finalizers ours | engine A/clean/post | fault patch Thing: forbidden | reconcile
    Cleanup A, Post A -> patch, patch status => failed
    Ready False Forbidden: cleaning up: writing the metadata: things.test.example.com "a" is forbidden: no permission (Stalled) (event)
no fault | reconcile
    Cleanup A, Post A -> patch => deleted, it is gone

# What a step finds unhealthy while it cleans up does not hide that the cleanup is done.
object deleted; finalizers foreign ours | engine A/clean/Found
A cleans unhealthy Found error Removed it was removed | reconcile
    Cleanup A -> patch, patch status => deleted
    object [foreign]
    Ready False CleanedUp: it is being deleted, our cleanup is done, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)
    Found False Removed: it was removed
engine A/clean/Found | reconcile
    => deleted

# A selective Cleaner: only objects with something to clean up get the finalizer.
engine A/select | reconcile 2
    Do A without the finalizer -> patch status => done, Ready
    Do A without the finalizer => done
delete | reconcile
    => gone, it is gone

# And those that have it are cleaned up.
object annotate cleans=yes | engine A/select | reconcile 2
    Do A -> patch, patch status => done, Ready
    object [ours] annotations [cleans:yes]
    Do A => done
delete | reconcile
    Cleanup A -> patch => deleted, it is gone

# A retired finalizer goes, from living objects and those that are being deleted.
object finalizers foreign example.com/old | engine retiredFinalizer=example.com/old A | reconcile 2
    Do A -> patch, patch status => done, Ready
    object [foreign]
    Do A => done
delete | reconcile
    -> patch status => deleted
    Ready False Deleting: it is being deleted, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)

# It goes without a Cleaner.
object deleted; finalizers example.com/old | engine retiredFinalizer=example.com/old A | reconcile
    -> patch => deleted, it is gone

# It is renamed.
object finalizers foreign example.com/old | engine retiredFinalizer=example.com/old A/clean
reconcile 2
    Do A -> patch, patch status => done, Ready
    object [foreign ours]
    Do A => done

# It is renamed, and both are there.
object finalizers example.com/old ours | engine retiredFinalizer=example.com/old A/clean
reconcile 2
    Do A -> patch, patch status => done, Ready
    object [ours]
    Do A => done

# What had the retired one is cleaned up, and not again while others keep it.
object deleted; finalizers example.com/old foreign | engine retiredFinalizer=example.com/old A/clean
reconcile 2
    Cleanup A without the finalizer -> patch, patch status => deleted
    object [foreign]
    Ready False CleanedUp: it is being deleted, our cleanup is done, and it is kept by finalizer "other.example.com/hold", which another controller has to remove (Reconciling)
    => deleted

# One that is not named is hinted at.
object deleted; finalizers ours | engine A | reconcile
    -> patch status => deleted
    Ready False Deleting: it is being deleted, and it is kept by finalizer "test.example.com/things", which another controller has to remove; if an older version of this operator has put "test.example.com/things" there, add it to step.Options.RetiredFinalizers (Reconciling)

# An object that is gone before it has the finalizer is no failure.
engine A/clean | fault patch Thing: missing | reconcile
    -> patch => failed, silently, again soon
    error: putting finalizer "test.example.com/things" on the object: things.test.example.com "child" not found
