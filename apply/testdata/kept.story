# What is kept outlives the set and the owner; what is only without an owner reference does not.
want map kept keep
want map unowned unowned
want map owned
settle
    - kept#1 (unowned); unowned#1 (unowned); owned#1
    True AllReady
drop map kept
drop map unowned
drop map owned
settle
    - kept#1 (unowned)
    True AllReady
want map kept keep
want map unowned unowned
want map owned
settle
    - kept#1 (unowned); unowned#2 (unowned); owned#2
    True AllReady
delete owner
settle
    - kept#1 (unowned)

# Too many objects are not pruned; those with an annotation stay.
limit 1
want map n0
want map n1
want map n2
settle
    - n0#1; n1#1; n2#1
    True AllReady
drop map n1
drop map n2
settle
    - n0#1; n1#1; n2#1
    False PruneLimit: 2 objects have left the set, more than the 1 that may be deleted at once (apply.PruneLimit): ConfigMap default/n1, ConfigMap default/n2
    error: TerminalError PruneLimit
patch map n1 {"metadata":{"annotations":{"apply.ctrlkit.dev/policy":"keep"}}}
settle
    - n0#1; n1#1
    True AllReady

# What a user has skipped is as the set wants it again when that is removed.
want map a k=1
settle
    - a#1 k=1
    True AllReady
patch map a {"metadata":{"annotations":{"policy.ctrlkit.dev/reconcile":"skip"}}}
want map a k=2
settle
    - a#1 k=1
    True AllReady
patch map a {"metadata":{"annotations":{"policy.ctrlkit.dev/reconcile":null}}}
settle
    - a#1 k=2
    True AllReady
patch map a {"metadata":{"annotations":{"policy.ctrlkit.dev/reconcile":"skip"}}}
want map a k=3
settle
    - a#1 k=2
    True AllReady
patch map a {"metadata":{"annotations":{"policy.ctrlkit.dev/reconcile":"manage"}}}
settle
    - a#1 k=3
    True AllReady
