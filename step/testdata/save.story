# What a step changes is written, once.
engine A | A does size 7 | reconcile 2
    Do A -> patch status => done, Ready
    object [] status 7
    Do A => done
A does size 8; fail first | reconcile 2
    Do A -> patch status => failed
    object [] status 8
    Ready False TemporaryError: A: the first thing broke (Reconciling) (event)
    Do A => failed
    error: A: the first thing broke
A does label size=7 | reconcile 2
    Do A -> patch, patch status => done, Ready
    object [] labels [size:7] status 8
    Do A => done
A does label size=8; size 9 | reconcile 2
    Do A -> patch, patch status => done
    object [] labels [size:8] status 9
    Do A => done

# Also from Post.
engine A/post | A posts label size=7; size 7 | reconcile 2
    Do A, Post A -> patch, patch status => done, Ready
    object [] labels [size:7] status 7
    Do A, Post A => done

# What a step records in the metadata is saved beside the finalizer, in the same reconcile.
engine A/clean | A does annotate id=bucket-1; size 7 | reconcile 2
    Do A -> patch, patch, patch status => done, Ready
    object [ours] annotations [id:bucket-1] status 7
    Do A => done

# Nothing newer is overwritten: the status.
engine A | A does size 1; edit label by=them; status size 42 | reconcile
    Do A -> patch status, patch => failed, silently, again soon
    object [] labels [by:them] status 42
    error: writing the status: another client has also changed .status.size: Operation cannot be fulfilled on things.test.example.com "a": object was modified
A does grow | reconcile
    Do A -> patch status => done, Ready
    object [] labels [by:them] status 43

# The metadata.
engine A | A does label by=us; size 1; edit label by=them; status size 42 | reconcile
    Do A -> patch, patch => failed, silently, again soon
    object [] labels [by:them] status 42
    error: writing the metadata: another client has also changed .metadata.labels.by: Operation cannot be fulfilled on things.test.example.com "a": object was modified
A does label by=us; grow | reconcile
    Do A -> patch, patch status => done, Ready
    object [] labels [by:us] status 43

# What others change elsewhere stays, and nothing that was earned is discarded.
engine A/clean
A does size 7; annotate id=7; edit label by=them, hold, spec 5; status count theirs=1, set Scanned=True
reconcile
    Do A -> patch, patch, patch, patch, patch status, patch, patch status => done
    object [ours foreign] spec 5 labels [by:them] annotations [id:7] status 7 "" [theirs:1] of generation 1
    Ready True Ready (of generation 1)
    Scanned True Because: it is so (of generation 0)
A does | reconcile
    Do A -> patch status => done, Ready
    object [ours foreign] spec 5 labels [by:them] annotations [id:7] status 7 "" [theirs:1]

# The same with a reader past the cache.
engine live A/clean
A does size 7; annotate id=7; edit label by=them, hold, spec 5; status count theirs=1, set Scanned=True
reconcile
    Do A -> live get, live get, patch, patch, patch, patch status, patch status => done
    object [ours foreign] spec 5 labels [by:them] annotations [id:7] status 7 "" [theirs:1] of generation 1
    Ready True Ready (of generation 1)
    Scanned True Because: it is so (of generation 0)
A does | reconcile
    Do A -> patch status => done, Ready
    object [ours foreign] spec 5 labels [by:them] annotations [id:7] status 7 "" [theirs:1]

# Conflicts are silent at first.
engine A | reconcile
    Do A -> patch status => done, Ready
A does fail conflict | reconcile 6
    5 times Do A => failed, silently, again soon
    error: A: Operation cannot be fulfilled on things.test.example.com "a": it was changed
    Do A -> patch status => failed
    Ready False Conflict: A: Operation cannot be fulfilled on things.test.example.com "a": it was changed (Reconciling)

# The status is kept when the metadata can't be written.
engine A | fault patch Thing: forbidden | A does label size=7; size 7 | reconcile 2
    Do A -> patch, patch status => failed
    object [] status 7
    Ready False Forbidden: writing the metadata: things.test.example.com "a" is forbidden: no permission (Stalled) (event)
    Do A -> patch => failed
    error: writing the metadata: things.test.example.com "a" is forbidden: no permission
no fault | reconcile
    Do A -> patch, patch status => done, Ready
    object [] labels [size:7] status 7

# The status can't be written.
engine A | A does size 7 | fault patch status: first | reconcile
    Do A -> patch status => failed
    error: writing the status: the first thing broke
fault patch status: forbidden | reconcile
    Do A -> patch status => failed
    event Forbidden: writing the status: things.test.example.com "a" is forbidden: no permission

# The object goes meanwhile.
engine A | A does delete | reconcile 2
    Do A -> patch status, patch => failed, silently, again soon, it is gone
    error: writing the status: things.test.example.com "a" not found
    => gone

# What is not ours is refused: the spec.
engine A | A does spec 3; size 7; label size=7 | reconcile 2
    Do A -> patch, patch status => failed
    object [] labels [size:7] status 7
    Ready False TerminalError: a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else (Stalled) (event)
    Do A => failed
    error: a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else

# Other metadata.
engine A | A does name other-; size 7; label size=7 | reconcile 2
    Do A -> patch, patch status => failed
    object [] labels [size:7] status 7
    Ready False TerminalError: a step has changed a field that the engine does not write: .metadata.generateName: change labels, annotations, finalizers, owner references or the status of the object, and nothing else (Stalled) (event)
    Do A => failed
    error: a step has changed a field that the engine does not write: .metadata.generateName: change labels, annotations, finalizers, owner references or the status of the object, and nothing else

# Save writes only what has changed, at once.
engine A | A does save; size 1; save; save; label a=b; save; size 2; unlabel a; save | reconcile
    Do A -> patch status, patch, patch, patch status, patch status => done, Ready
    object [] status 2

# Save refuses the spec.
engine A | A does spec 3; size 7; save | reconcile
    Do A -> patch status, patch status => failed
    object [] status 7
    Ready False TerminalError: A: a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else (Stalled) (event)
    error: A: a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else; a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else

# Save does not overwrite.
engine A | A does status phase theirs; phase ours; save | reconcile
    Do A -> patch status, patch, patch status, patch => failed, silently, again soon
    object [] status 0 "theirs" []
    error: A: writing the status: another client has also changed .status.phase: Operation cannot be fulfilled on things.test.example.com "a": object was modified; writing the status: another client has also changed .status.phase: Operation cannot be fulfilled on things.test.example.com "a": object was modified

# What another client has written before a Save stays when the same part is written again.
engine A | A does edit owner theirs; owner a; status set Scanned=True; size 7; save | reconcile
    Do A -> patch, patch, patch, patch status, patch, patch status, patch status => done, Ready
    object [] owners [a theirs] status 7
    Scanned True Because: it is so (of generation 0)
A does | reconcile
    Do A => done

# Also with a second Save, and another client between the two.
engine A
A does edit owner theirs; owner a; size 7; save; edit label by=others; owner b; phase second; save
reconcile
    Do A -> patch, patch, patch, patch status, patch, patch status, patch, patch, patch, patch status, patch, patch status, patch status => done, Ready
    object [] owners [a b theirs] labels [by:others] status 7 "second" []
A does | reconcile
    Do A => done

# A step may save the object itself: what it changed of the status is saved, too, and not the spec.
engine A | A does size 7; updateStatus | reconcile
    Do A -> patch status, patch status => done, Ready
    object [] status 7
A does size 8; patchStatus size 9 | reconcile
    Do A -> patch status => done
    object [] status 9
A does size 10; label a=b; update | reconcile
    Do A -> patch, patch status => done
    object [] labels [a:b] status 10
A does size 11; patch label a=c | reconcile
    Do A -> patch, patch status => done
    object [] labels [a:c] status 11
A does size 12; patch spec 3 | reconcile
    Do A -> patch status => failed
    object [] labels [a:c] status 12
    Ready False TerminalError: A: a step has changed a field that the engine does not write: [.spec.size] of Request.Object is patched: patch a copy of the object if its user allows that (Stalled) (event)
    error: A: a step has changed a field that the engine does not write: [.spec.size] of Request.Object is patched: patch a copy of the object if its user allows that; a step has changed a field that the engine does not write: .spec.size: change labels, annotations, finalizers, owner references or the status of the object, and nothing else

# A step writes down what it is about to make, and crashes. The next process finds it.
engine A | A does phase token; label token=yes; edit label by=them; save; break patch | reconcile
    Do A -> patch, patch, patch, patch status, patch, patch status, patch status => failed
    object [] labels [by:them token:yes] status 0 "token" []
    error: writing the status: the first thing broke
no fault | engine A | A does | reconcile 2
    Do A -> patch status => done, Ready
    Do A => done

# A step that reads the object again before its write keeps what it changed, and what others did.
engine live A | lag
A does phase saved; updateStatus; edit spec 5, label by=them; set Available=True; reread; size 7; updateStatus
reconcile
    Do A -> live get, patch status, patch status, patch status, patch status => done
    object [] spec 5 labels [by:them] status 7 "saved" [] of generation 1
    Ready True Ready (of generation 1)
    Available True Because: it is so (of generation 0)

# Also when it reads past the cache.
engine live A | lag
A does phase saved; updateStatus; edit spec 5, label by=them; set Available=True; relive; size 7; updateStatus
reconcile
    Do A -> live get, live get, patch status, patch status, patch status, patch status => done
    object [] spec 5 labels [by:them] status 7 "saved" [] of generation 1
    Ready True Ready (of generation 1)
    Available True Because: it is so (of generation 0)

# Who writes the object past the request is told so.
engine A | A does grow; past | reconcile
    Do A -> update status, patch status, patch, patch status => failed
    object [] status 1
    Ready False TerminalError: a step has changed a field that the engine does not write: .metadata.resourceVersion: Request.Object was read or written by another client than Request.Client (Stalled) (event)

# A step that cancels a context of its own has failed like any other.
engine A | A does canceled | reconcile
    Do A -> patch status => failed
    Ready False TemporaryError: A: asking the bank: context canceled (Reconciling) (event)
