# Kinds of Kubernetes
ConfigMap: {apiVersion: v1, kind: ConfigMap, data: {a: b}}
    Ready: NoStatus
custom, without a status: {apiVersion: example.com/v1, kind: Thing, spec: {a: 1}}
    Ready: NoStatus
custom, with a status that says nothing: {apiVersion: example.com/v1, kind: Thing, status: {url: a}}
    Ready
Deployment, not observed: {apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2}}
    Progressing: its controller has not seen the last change
Deployment, in a rollout: {apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1}}
    Progressing: 1 of 2 replicas updated
Deployment, with surplus replicas: {apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2}}
    Progressing: 1 surplus replica to be removed
Deployment, too late: {apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1, progressDeadlineSeconds: 600}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: ReplicaSet "web-1" has timed out progressing.}]}}
    Failed: ReplicaSet "web-1" has timed out progressing.
Deployment, over its quota: {apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "web-1" is forbidden: exceeded quota'}]}}
    Failed: pods "web-1" is forbidden: exceeded quota
Deployment, ready: {apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1, progressDeadlineSeconds: 600}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}
    Ready
ReplicaSet: {apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1, readyReplicas: 1}}
    Progressing: 1 of 2 replicas available
StatefulSet: {apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 2}}
    Progressing: 2 of 3 replicas ready
DaemonSet: {apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 2}}
    Progressing: 2 of 3 replicas updated
Job, not started: {apiVersion: batch/v1, kind: Job, spec: {completions: 1}}
    Progressing: Job not started
Job, running: {apiVersion: batch/v1, kind: Job, spec: {completions: 3}, status: {startTime: "2030-01-01T00:00:00Z", active: 1, succeeded: 1}}
    Progressing: 1 of 3 Pods succeeded
Job, suspended: {apiVersion: batch/v1, kind: Job, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True", reason: JobSuspended}]}}
    Progressing: it is suspended
Job, complete: {apiVersion: batch/v1, kind: Job, status: {startTime: "2030-01-01T00:00:00Z", succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}
    Ready
Job, failed: {apiVersion: batch/v1, kind: Job, status: {failed: 7, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}
    Failed: Job has reached the specified backoff limit
CronJob: {apiVersion: batch/v1, kind: CronJob, status: {active: [{name: a}]}}
    Ready
Pod, new: {apiVersion: v1, kind: Pod}
    Progressing: it has not been scheduled
Pod that fits nowhere: {apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient cpu.'}]}}
    Progressing: 0/3 nodes are available: 3 Insufficient cpu.
Pod, ready: {apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}
    Ready
Pod, not ready: {apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}}
    Progressing: it is running, and not ready
Pod that crashes at its start: {apiVersion: v1, kind: Pod, status: {phase: Pending, initContainerStatuses: [{name: setup, state: {waiting: {reason: CrashLoopBackOff}}}]}}
    Failed: container setup is in CrashLoopBackOff
Pod without its image: {apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: b, state: {waiting: {reason: ImagePullBackOff}}}, {name: a, state: {waiting: {reason: ContainerCreating}}}]}}
    Failed: container b is in ImagePullBackOff
Pod, evicted: {apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted, message: 'The node was low on resource: memory.'}}
    Failed: The node was low on resource: memory.
Pod, complete: {apiVersion: v1, kind: Pod, status: {phase: Succeeded}}
    Ready
Pod of a lost node: {apiVersion: v1, kind: Pod, status: {phase: Unknown}}
    Unknown: its phase is Unknown
Node, ready: {apiVersion: v1, kind: Node, status: {conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: "True"}]}}
    Ready
Node, lost: {apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}}
    Unknown: Kubelet stopped posting node status.
Node without disk: {apiVersion: v1, kind: Node, status: {conditions: [{type: DiskPressure, status: "True", reason: KubeletHasDiskPressure}, {type: Ready, status: "True"}]}}
    Failed: DiskPressure is True: KubeletHasDiskPressure
Namespace: {apiVersion: v1, kind: Namespace, status: {phase: Active}}
    Ready
Namespace that is stuck: {apiVersion: v1, kind: Namespace, metadata: {deletionTimestamp: "2030-01-01T00:00:00Z"}, status: {phase: Terminating, conditions: [ {type: NamespaceContentRemaining, status: "False"}, {type: NamespaceFinalizersRemaining, status: "True", reason: SomeFinalizersRemain, message: 'Some content has finalizers remaining: example.com/a'}]}}
    Terminating: Some content has finalizers remaining: example.com/a
PersistentVolumeClaim, pending: {apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}
    Progressing: PVC is not Bound. phase: Pending
PersistentVolumeClaim, lost: {apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}
    Failed: it has lost its volume
PersistentVolume, released: {apiVersion: v1, kind: PersistentVolume, status: {phase: Released}}
    Failed: it is released by its claim, and can't be bound again
PersistentVolume, bound: {apiVersion: v1, kind: PersistentVolume, status: {phase: Bound}}
    Ready
HorizontalPodAutoscaler without metrics: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: did not receive metrics}]}}
    Progressing: did not receive metrics
HorizontalPodAutoscaler, off: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: ScalingActive, status: "False", reason: ScalingDisabled}]}}
    Ready
CertificateSigningRequest: {apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Approved, status: "True"}]}}
    Progressing: its certificate is not issued yet
CertificateSigningRequest, denied: {apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Denied, status: "True", reason: Nope, message: not today}]}}
    Failed: not today
CustomResourceDefinition whose names are taken: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [ {type: NamesAccepted, status: "False", reason: ShortNamesConflict, message: '"w" is already in use'}, {type: Established, status: "False", reason: NotAccepted, message: not all names are accepted}]}}
    Failed: "w" is already in use
APIService: {apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: endpoints for service/metrics are missing}]}}
    Progressing: endpoints for service/metrics are missing

# Custom kinds
Ready: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "True", reason: AllGood, message: all is good}]}}
    Ready
not ready: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: waits for its database}]}}
    Progressing: waits for its database
Stalled, and reconciling: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Reconciling, status: "True"}, {type: Stalled, status: "True", reason: BadSpec, message: size is negative}]}}
    Failed: size is negative
ready, and reconciling: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True", reason: Scaling}]}}
    Progressing: Reconciling is True: Scaling
Ready of an older generation: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}
    Progressing: its controller has not seen the last change
Stalled of an older generation: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Stalled, status: "True", observedGeneration: 2}, {type: Ready, status: "False", observedGeneration: 2}]}}
    Progressing: its controller has not seen the last change
only types that nothing is known of: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {conditions: [{type: Colorful, status: "False"}]}}
    Ready
Flux, failed for now: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [ {type: Stalled, status: "True", reason: RetriesExceeded, message: Failed to install after 1 attempt(s)}, {type: Ready, status: "False", reason: InstallFailed, message: install failed}]}}
    Failed: Failed to install after 1 attempt(s)
cert-manager: {apiVersion: cert-manager.io/v1, kind: Certificate, status: {conditions: [{type: Issuing, status: "True"}, {type: Ready, status: "False", reason: DoesNotExist, message: Issuing certificate as Secret does not exist}]}}
    Progressing: Issuing certificate as Secret does not exist
Crossplane, refused: {apiVersion: s3.aws.upbound.io/v1, kind: Bucket, status: {conditions: [{type: Ready, status: "False", reason: Creating}, {type: Synced, status: "False", reason: ReconcileError, message: access denied}]}}
    Failed: access denied
Crossplane, creating: {apiVersion: s3.aws.upbound.io/v1, kind: Bucket, status: {conditions: [{type: Ready, status: "False", reason: Creating}, {type: Synced, status: "True"}]}}
    Progressing: Ready is False: Creating
Crossplane, paused: {apiVersion: s3.aws.upbound.io/v1, kind: Bucket, status: {conditions: [{type: Ready, status: "True"}, {type: Synced, status: "False", reason: ReconcilePaused}]}}
    Ready
OpenShift, degraded: {apiVersion: config.openshift.io/v1, kind: ClusterOperator, status: {conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Degraded, status: "True", reason: Sync, message: x509}]}}
    Failed: x509
OpenShift, progressing: {apiVersion: config.openshift.io/v1, kind: ClusterOperator, status: {conditions: [{type: Available, status: "True"}, {type: Degraded, status: "False"}, {type: Progressing, status: "True", message: 2 of 3 updated}]}}
    Progressing: 2 of 3 updated
OpenShift, well: {apiVersion: config.openshift.io/v1, kind: ClusterOperator, status: {conditions: [{type: Available, status: "True"}, {type: Degraded, status: "False"}, {type: Progressing, status: "False"}, {type: Upgradeable, status: "False"}]}}
    Ready
OpenShift, not available: {apiVersion: config.openshift.io/v1, kind: ClusterOperator, status: {conditions: [{type: Available, status: "False", message: no endpoints}]}}
    Failed: no endpoints
Cluster API, error: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, status: {conditions: [ {type: Ready, status: "False", severity: Error, reason: InstanceTerminated, message: 1 of 2 completed}, {type: InfrastructureReady, status: "False", severity: Error, reason: InstanceTerminated, message: the instance is gone}]}}
    Failed: the instance is gone
Cluster API, warning: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, status: {conditions: [{type: Ready, status: "False", severity: Warning, reason: Scaling, message: quota}]}}
    Progressing: quota
Cluster API, info: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, status: {conditions: [{type: Ready, status: "False", severity: Info, reason: WaitingForBootstrapData}]}}
    Progressing: Ready is False: WaitingForBootstrapData
Cluster API, an error that Ready does not count: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, status: {conditions: [{type: Ready, status: "True"}, {type: AddonsReady, status: "False", severity: Error}]}}
    Ready
Cluster API, final: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, status: {failureReason: CreateError, failureMessage: no such image, conditions: [{type: Ready, status: "True"}]}}
    Failed: no such image
Cluster API v1beta2: {apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineDeployment, status: {conditions: [{type: Available, status: "True"}, {type: RollingOut, status: "True", reason: RollingOut, message: Rolling out 1 not up-to-date replicas}]}}
    Progressing: Rolling out 1 not up-to-date replicas
Knative, failed: {apiVersion: tekton.dev/v1, kind: TaskRun, status: {conditions: [{type: Succeeded, status: "False", reason: TaskRunTimeout, message: failed to finish within 1h}]}}
    Failed: failed to finish within 1h
Knative, running: {apiVersion: tekton.dev/v1, kind: TaskRun, status: {conditions: [{type: Succeeded, status: Unknown, reason: Running, message: Not all Steps have completed}]}}
    Progressing: Not all Steps have completed
Gateway API, not accepted: {apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {generation: 1}, status: {conditions: [{type: Accepted, status: "False", reason: InvalidParameters, message: no such class, observedGeneration: 1}]}}
    Failed: no such class
Gateway API, pending: {apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, status: {conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "False", reason: Pending, message: Waiting for controller}]}}
    Progressing: Waiting for controller
Argo Rollout, done: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 7}, spec: {replicas: 1}, status: {observedGeneration: "7", phase: Healthy, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}
    Ready
Argo Rollout, behind: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 8}, status: {observedGeneration: "7", phase: Healthy}}
    Progressing: its controller has not seen the last change
Argo Application: {apiVersion: argoproj.io/v1alpha1, kind: Application, status: {health: {status: Degraded}}}
    Failed: its health is Degraded
counters: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, readyReplicas: 1}}
    Progressing: 1 of 3 replicas ready
counters, all: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 3}}
    Ready
counters, surplus: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {replicas: 1}, status: {replicas: 3, readyReplicas: 3}}
    Progressing: 2 surplus replicas to be removed
phase, ready: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {phase: Running}}
    Ready
state, failed: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {state: error, message: disk full}}
    Failed: disk full
phase, unknown: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {phase: Frobnicated}}
    Unknown: its phase is Frobnicated
phase, leaving: {apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {phase: Deleting}}
    Terminating: its phase is Deleting
