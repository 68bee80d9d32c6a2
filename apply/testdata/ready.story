# The condition names the first object that is not ready, and what it lacks.
want map config
want deployment web
want service web
settle
    - config#1; web#1; web#1
    False NotAllReady: 2 of 3 ready: Deployment web: 0 of 2 replicas created
status deployment web {"observedGeneration":1,"replicas":3,"updatedReplicas":2,"readyReplicas":3,"availableReplicas":3}
settle
    - config#1; web#1; web#1
    False NotAllReady: 2 of 3 ready: Deployment web: 1 surplus replica to be removed
status deployment web {"observedGeneration":1,"replicas":2,"updatedReplicas":1,"readyReplicas":2,"availableReplicas":2}
settle
    - config#1; web#1; web#1
    False NotAllReady: 2 of 3 ready: Deployment web: 1 of 2 replicas updated
status deployment web {"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":1,"availableReplicas":1}
settle
    - config#1; web#1; web#1
    False NotAllReady: 2 of 3 ready: Deployment web: 1 of 2 replicas available
status deployment web {"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}
settle
    - config#1; web#1; web#1
    True AllReady
status deployment web {"replicas":2,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}
settle
    - config#1; web#1; web#1
    False ObjectFailed: 2 of 3 ready: Deployment web: Progress deadline exceeded

# A status that is older than the spec says nothing. Generations do not appear in a condition.
want deployment web
settle
    - web#1
    False NotAllReady: 0 of 1 ready: Deployment web: 0 of 2 replicas created
status deployment web {"observedGeneration":1}
settle
    - web#1
    False NotAllReady: 0 of 1 ready: Deployment web: 0 of 2 replicas created
status deployment web {"observedGeneration":1,"replicas":4}
settle
    - web#1
    False NotAllReady: 0 of 1 ready: Deployment web: 0 of 2 replicas updated
patch deployment web {"spec":{"minReadySeconds":3}}
settle
    - web#1
    False NotAllReady: 0 of 1 ready: Deployment web: its controller has not seen the last change

# A Job is ready at its end, not at its start: what comes after a migration needs its result.
want job migration image=busybox:1 wave=-1
want map after
settle
    - migration#1 busybox:1
    False NotAllReady: 0 of 2 ready: Job migration: Job not started
status job migration {"startTime":"2030-01-01T00:00:00Z","uncountedTerminatedPods":{},"active":1}
settle
    - migration#1 busybox:1
    False NotAllReady: 0 of 2 ready: Job migration: 0 of 1 Pods succeeded
status job migration {"startTime":"2030-01-01T00:00:00Z","uncountedTerminatedPods":{},"active":0,"failed":1}
settle
    - migration#1 busybox:1
    False NotAllReady: 0 of 2 ready: Job migration: 0 of 1 Pods succeeded
status job migration complete
settle
    - migration#1 busybox:1; after#1
    True AllReady
