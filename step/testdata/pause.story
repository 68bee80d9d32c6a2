# A paused object is left alone.
object annotate ctrlkit.dev/paused=true | engine A/clean/post | reconcile 2
    -> patch status => paused by Paused
    object [] annotations [ctrlkit.dev/paused:true] of generation 0
    Ready Unknown Paused: annotation ctrlkit.dev/paused is "true": nothing is done until it is removed (Paused)
    => paused by Paused

# Also with a capital, and when the condition can't be written at first.
object annotate ctrlkit.dev/paused=True | engine A/clean/post | fault patch status: first | reconcile
    -> patch status => failed by Paused
    error: writing the status: the first thing broke
no fault | reconcile
    -> patch status => paused by Paused
    object [] annotations [ctrlkit.dev/paused:True] of generation 0
    Ready Unknown Paused: annotation ctrlkit.dev/paused is "True": nothing is done until it is removed (Paused)

# These are no pause.
object annotate ctrlkit.dev/paused=false | engine A | reconcile
    Do A -> patch status => done, Ready
edit annotate ctrlkit.dev/paused=False | reconcile
    Do A => done
    object [] annotations [ctrlkit.dev/paused:False]

# A word is a mistake.
object annotate ctrlkit.dev/paused=yes | engine A | reconcile 2
    -> patch status => paused by InvalidValue
    object [] annotations [ctrlkit.dev/paused:yes] of generation 0
    Ready Unknown InvalidValue: annotation ctrlkit.dev/paused is "yes", which is neither "true" nor "false": nothing is done until it is (Paused)
    => paused by InvalidValue

# So is nothing.
object annotate ctrlkit.dev/paused= | engine A | reconcile 2
    -> patch status => paused by InvalidValue
    object [] annotations [ctrlkit.dev/paused:] of generation 0
    Ready Unknown InvalidValue: annotation ctrlkit.dev/paused is "", which is neither "true" nor "false": nothing is done until it is (Paused)
    => paused by InvalidValue

# The deletion waits, too.
object deleted; finalizers ours; annotate ctrlkit.dev/paused=true | engine A/clean/post | reconcile 2
    -> patch status => paused by Paused
    object [ours] annotations [ctrlkit.dev/paused:true] of generation 0
    Ready Unknown Paused: annotation ctrlkit.dev/paused is "true": nothing is done until it is removed; the deletion waits for that, too (Paused)
    => paused by Paused

# The other conditions stay as they were.
engine A/Found | A does fail first | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    Found Unknown NotReached: not evaluated yet
edit annotate ctrlkit.dev/paused=true; spec 3 | reconcile
    -> patch status => paused by Paused
    object [] spec 3 annotations [ctrlkit.dev/paused:true] of generation 1
    Ready False TemporaryError: A: the first thing broke (Reconciling) (of generation 1)
    Paused True Paused: annotation ctrlkit.dev/paused is "true": nothing is done until it is removed
    Found Unknown NotReached: not evaluated yet (of generation 1)
edit unannotate ctrlkit.dev/paused | reconcile
    Do A -> patch status => failed
    object [] spec 3
    Ready False TemporaryError: A: the first thing broke (Reconciling)
    no Paused
