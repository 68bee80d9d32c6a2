# What has not changed is skipped, for an hour. Nothing is read live.
child create input | engine live skip A | A does read input; read absent; list | reconcile 3
    Do A -> patch status => done, Ready
    Do A => done
    => converged
child create bystander | reconcile
    => converged
pass 59m59s | reconcile
    => converged
pass 1s | reconcile 2
    Do A => done
    => converged

# Any change of the object or of an input is seen.
child create input | child create partial | child create listed-1 | child create listed-2
engine live skip A | A does read input; read absent; partial partial; list | reconcile 3
    Do A -> patch status => done, Ready
    Do A => done
    => converged
edit spec 3 | reconcile 3
    Do A -> patch status => done
    object [] spec 3
    Do A => done
    => converged
edit label a=b | reconcile 2
    Do A => done
    object [] spec 3 labels [a:b]
    => converged
status size 42 | reconcile 2
    Do A => done
    object [] spec 3 labels [a:b] status 42
    => converged
child update input | reconcile 2
    Do A => done
    => converged
child update partial | reconcile 2
    Do A => done
    => converged
child delete partial | reconcile 2
    Do A => done
    => converged
child create absent | reconcile 2
    Do A => done
    => converged
child update listed-1 | reconcile 2
    Do A => done
    => converged
child create listed-3 | reconcile 2
    Do A => done
    => converged
child delete listed-1 | reconcile 2
    Do A => done
    => converged
fault get ConfigMap input: first | reconcile 2
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    Do A => failed
    error: A: the first thing broke
no fault | reconcile 3
    Do A -> patch status => done, Ready
    Do A => done
    => converged

# A requested time is kept.
engine live skip A | A does continue 1m | reconcile 2
    Do A -> patch status => done, Ready, again after 1m0s
    Do A => done, again after 1m0s
pass 40s | reconcile
    => converged, again after 20s
pass 20s | reconcile
    Do A => done, again after 1m0s

# After a failure, a panic or a wait nothing is skipped.
engine live skip A | A does fail first | reconcile 3
    Do A -> patch status => failed
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    2 times Do A => failed
    error: A: the first thing broke
A does panic a bug | pass 10m | reconcile 3
    Do A -> patch status => failed
    Ready False Panic: A: panic: a bug (Stalled) (event)
    2 times Do A => failed
    error: A: panic: a bug
A does wait the bucket | pass 10m | reconcile 3
    Do A -> patch status => waiting
    Ready False Waiting: waits for the bucket (Reconciling)
    2 times Do A => waiting

# Nor after a write, to a child or to the status.
engine live skip A | A does spawn | reconcile 4
    Do A -> live get, create child-1, patch status => done, Ready
    Do A -> create child-2 => done
    Do A -> create child-3 => done
    Do A -> create child-4 => done
A does grow | pass 2s | reconcile 1 | pass 2s | reconcile 1 | pass 2s | reconcile 1
    Do A -> patch status => done
    object [] status 1
    Do A -> patch status => done
    object [] status 2
    Do A -> patch status => done
    object [] status 3

# Nor after a read that has failed.
engine live skip A | A does ignore read broken | fault broken: first | reconcile 3
    Do A -> patch status => done, Ready
    2 times Do A => done

# Nor after a list that has failed.
engine live skip A | A does ignore list | fault list: first | reconcile 3
    Do A -> patch status => done, Ready
    2 times Do A => done

# Nor after too many reads.
child create input | engine live skip A | A does read input 65 | reconcile 3
    Do A -> patch status => done, Ready
    2 times Do A => done

# Nor after the read of a subresource.
child create input | engine live skip A | A does ignore scale input | reconcile 3
    Do A -> patch status => done, Ready
    2 times Do A => done

# It has to be asked for.
engine A | reconcile 3
    Do A -> patch status => done, Ready
    2 times Do A => done
