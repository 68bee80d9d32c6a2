# A Job runs once per content, which retries and the time to live are not. That is held back.
want job migration image=tool:1 ttl=60 retries=1 once
settle
    - migration#1 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration complete
settle
    - migration#1 tool:1 for 60 s
    True AllReady
delete job migration
settle
    -
    True AllReady
want job migration image=tool:1 ttl=60 retries=3 once
settle
    -
    True AllReady
want job migration image=tool:2 ttl=60 retries=3 once
settle
    - migration#2 tool:2
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration complete
settle
    - migration#2 tool:2 for 60 s
    True AllReady
want job migration image=tool:1 ttl=60 retries=3 once
settle
    - migration#2 tool:2 for 60 s
    True AllReady
restart

# Another content supersedes a Job that runs, when its Pods have ended.
want job migration image=tool:1 once
settle
    - migration#1 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration {"startTime":"2030-01-01T00:00:00Z","active":1,"uncountedTerminatedPods":{}}
pod
want job migration image=tool:2 once
settle
    - migration#1 tool:1 deleted
    False NotAllReady: 0 of 1 ready: Job migration: waits for Job default/migration to be gone
end-pod
settle
    - migration#2 tool:2
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
want job migration image=tool:1 once
settle
    - migration#3 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started

# A Job that completed while the operator was down is noted before the next one takes its name.
want job migration image=tool:1 once
settle
    - migration#1 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration complete
want job migration image=tool:2 once
settle
    - migration#2 tool:2
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
want job migration image=tool:1 once
settle
    - migration#2 tool:2
    True AllReady
drop job migration
status job migration complete
settle
    -
    True AllReady
want job migration image=tool:2 once
settle
    -
    True AllReady

# A failed Job stays, and runs again when it is deleted, as the remedy says.
want job migration image=tool:1 ttl=0 once
settle
    - migration#1 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration failed
settle
    - migration#1 tool:1
    False JobFailed: Job default/migration has failed: Job has reached the specified backoff limit: correct what it is made from, or run it again: kubectl delete job migration -n default
    error: TerminalError JobFailed
delete job migration
settle
    - migration#2 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration complete
settle
    - migration#2 tool:1 for 0 s
    True AllReady

# What was an ordinary Job of the set does not run again because it gets the policy.
want job migration image=tool:1
settle
    - migration#1 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
status job migration complete
settle
    - migration#1 tool:1
    True AllReady
want job migration image=tool:1 once
settle
    - migration#1 tool:1
    True AllReady
delete job migration
settle
    -
    True AllReady

# The user who does not let a Job be deleted is heard.
want job migration image=tool:1 once
settle
    - migration#1 tool:1
    False NotAllReady: 0 of 1 ready: Job migration: Job not started
patch job migration {"metadata":{"annotations":{"policy.ctrlkit.dev/allow":"observe,create,update"}}}
want job migration image=tool:2 once
settle
    - migration#1 tool:1
    False ImmutableField: Job default/migration runs for another content, and its annotations do not let it be deleted: delete it, so that it is created again
    error: TerminalError ImmutableField
