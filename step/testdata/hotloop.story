# It ends when it is not undone any more.
engine A | A does label tier=ours | undo tier=theirs 7 | edit label tier=ours | settle 20m
    => waiting, again after 1s
    object [] labels [tier:theirs]
    it is ready

# Also with SkipUnchanged.
engine skip A | A does label tier=ours | undo tier=theirs 7 | edit label tier=ours | settle 20m
    => waiting, again after 1s
    object [] labels [tier:theirs]
    it is ready

# A change of the spec ends it at once.
engine A | A does label tier=ours | undo tier=theirs 7 | edit label tier=ours; spec 1 | settle 5s
    => waiting, again after 1s
    object [] labels [tier:theirs]
    it is ready

# A step that writes another value each time makes the event of the next reconcile itself.
engine A | A does tick odd[key | quietly 59 | quietly 1 | quietly 1 | reconcile 10
    Do A -> patch status => done
    object [] status 0 "" [odd[key:59]
    Do A -> patch status => done
    object [] status 0 "" [odd[key:60]
    Do A -> patch status => done, again after 1s
    object [] status 0 "" [odd[key:61]
    event HotLoop: .status.counters.odd[key of Thing default/a is written again and again: a step gives it another value each time
    10 times => waiting, again after 1s
pass 1s | reconcile
    Do A -> patch status => done, again after 2m1s
    object [] status 0 "" [odd[key:62]
    Ready False HotLoop: .status.counters.odd[key of Thing default/a is written again and again: a step gives it another value each time (Reconciling) (event)

# One that asks for the next reconcile itself makes no echo, however soon.
engine A | A does grow; again 100ms | poll 200

# A deletion is not slowed.
engine A/clean | A does label tier=ours | undo tier=theirs 7 | delete | reconcile
    => waiting, again after 1s
    object [ours] labels [tier:theirs]
    Cleanup A -> patch => deleted, again after 2m2s, it is gone

# Nor is a pause.
engine A | A does label tier=ours | undo tier=theirs 7 | edit annotate ctrlkit.dev/paused=true | reconcile
    => waiting, again after 1s
    object [] labels [tier:theirs]
    -> patch status => paused by Paused, again after 2m2s
    object [] labels [tier:theirs] annotations [ctrlkit.dev/paused:true]
    Paused True Paused: annotation ctrlkit.dev/paused is "true": nothing is done until it is removed

# Nor is a change of the object's policy, which does not end the slowing for good.
object annotate policy.ctrlkit.dev/reclaim=retain | engine A | A does label tier=ours | undo tier=theirs 7
    => waiting, again after 1s
    object [] labels [tier:theirs] annotations [policy.ctrlkit.dev/reclaim:retain]
edit annotate example.com/a=b | reconcile
    => waiting, again after 1s
    object [] labels [tier:theirs] annotations [example.com/a:b policy.ctrlkit.dev/reclaim:retain]
edit unannotate policy.ctrlkit.dev/reclaim; label tier=theirs | reconcile
    Do A -> patch, patch status => done, again after 2s
    object [] labels [tier:ours] annotations [example.com/a:b]
    Ready False HotLoop: .metadata.labels.tier of Thing default/a is written again and again: another client undoes it, which the managed fields do not name: find out which one and stop one of the two (Reconciling) (event)
edit label tier=theirs | reconcile
    => waiting, again after 2s
    object [] labels [tier:theirs] annotations [example.com/a:b]
