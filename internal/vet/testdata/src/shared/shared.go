// Package shared changes objects that belong to a cache.
package shared

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/step"
)

var filter = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool {
		e.Object.SetLabels(nil) // want `e.Object is changed in an object that belongs to the cache and is shared \(an event of package event has it\): change a copy, such as one by DeepCopy`
		return true
	},
	UpdateFunc: func(e event.UpdateEvent) bool {
		pod, ok := e.ObjectNew.(*corev1.Pod)
		if !ok {
			return false
		}
		pod.Spec.Containers[0].Image = "" // want `pod.Spec.Containers\[0\].Image is changed`
		pod.Spec.NodeName = ""            // want `pod.Spec.NodeName is changed`
		spec := &pod.Spec
		spec.Hostname = "" // want `spec.Hostname is changed`
		clean(pod)
		return true
	},
	GenericFunc: func(e event.GenericEvent) bool {
		e.Object.SetLabels(nil) // who sends it may have made a copy
		return true
	},
}

// clean is called with objects of events only.
func clean(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{}         // want `pod.Status is changed`
	controllerutil.AddFinalizer(pod, "x/y") // want `pod is changed`
	slices.Sort(pod.Finalizers)             // want `pod.Finalizers is changed`
	delete(pod.Labels, "x")                 // want `pod.Labels is changed`
	pod.Spec.Priority = nil                 //nolint:shared // a test sees it
	annotations := pod.GetAnnotations()     // the map itself
	annotations["x"] = "y"                  // want `annotations\["x"\] is changed`
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Name = "" // want `pod.Spec.InitContainers\[i\].Name is changed`
	}
}

var selected = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Labels["x"] = "y" // want `NewPredicateFuncs calls the function with it`
	}
	return true
})

type reconciler struct{ client.Client }

func (r *reconciler) requests(ctx context.Context, obj client.Object) []reconcile.Request {
	obj.SetAnnotations(nil)                                                  // want `a MapFunc is called with it`
	if err := r.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil { // want `obj is changed`
		return nil
	}
	return nil
}

func setUp(ctx context.Context, mgr ctrl.Manager, r *reconciler, engine *step.Engine[*corev1.Pod], pods corelisters.PodLister) error {
	_ = ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.requests))
	step.WatchNamed(&corev1.Secret{}, func(pod *corev1.Pod) []client.ObjectKey {
		pod.Name = "" // want `WatchNamed calls the function with it`
		return nil
	})
	step.WatchMapped(&corev1.Secret{}, func(secret *corev1.Secret) []client.ObjectKey {
		secret.Name = "" // want `WatchMapped calls the function with it`
		return nil
	})
	_ = cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		obj.(*corev1.Pod).Name = "" // want `ResourceEventHandlerFuncs.AddFunc is called with it`
	}}
	all, err := pods.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range all {
		pod.Labels = nil // want `a lister returns it`
	}
	return mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "x", func(obj client.Object) []string {
		obj.(*corev1.Pod).Name = "" // want `IndexField calls the function with it`
		return nil
	})
}

func (r *reconciler) uncopied(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		pod.Name = ""                               // a copy of the first level is the list's own
		pod.Labels["x"] = ""                        // want `it was read with UnsafeDisableDeepCopy`
		pods.Items[i].Spec.Containers[0].Image = "" // want `it was read with UnsafeDisableDeepCopy`
	}
	return nil
}

func snapshot(req *step.Request[*corev1.Pod]) {
	req.Snapshot().Labels = nil // want `Snapshot returns it`
	req.Object.Labels = nil
}

// What follows is right.

// copies are what a client returns by default.
func (r *reconciler) copies(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.List(ctx, &pods); err != nil {
		return err
	}
	for i := range pods.Items {
		pods.Items[i].Labels["x"] = "y"
		touch(&pods.Items[i])
	}
	return nil
}

// touch is called with copies, too.
func touch(pod *corev1.Pod) { pod.Labels["x"] = "y" }

var right = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.DeepCopyObject().(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		before.Spec, before.Name = corev1.PodSpec{}, now.Name
		now = now.DeepCopy()
		now.Name = ""
		touch(e.ObjectNew.(*corev1.Pod)) // touch is not followed, because it also gets copies
		spec := before.Spec
		spec.NodeName = ""
		for _, container := range e.ObjectOld.(*corev1.Pod).Spec.Containers {
			container.Name = ""
		}
		names := map[string]bool{}
		names[before.Name] = true
		return true
	},
}
