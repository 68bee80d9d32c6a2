// Package background makes requests with contexts of its own.
package background

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

type reconciler struct {
	client.Client
	set kubernetes.Interface
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.Get(context.Background(), req.NamespacedName, &pod); err != nil { // want `context.Background\(\) is the context of r.Get: pass ctx on, so that the call ends with it, or context.WithoutCancel\(ctx\) if it must not`
		return ctrl.Result{}, err
	}
	if _, err := r.set.CoreV1().Pods("a").Get(context.TODO(), "b", metav1.GetOptions{}); err != nil { // want `context.TODO\(\) is the context of r.set.CoreV1\(\).Pods\("a"\).Get`
		return ctrl.Result{}, err
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Second) // want `context.Background\(\) is the context of r.Status\(\).Update`
	defer cancel()
	if err := r.Status().Update(limited, &pod); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.remove(context.Background(), &pod); err != nil { // want `context.Background\(\) is the context of r.remove`
		return ctrl.Result{}, err
	}
	done := func(context.Context) (bool, error) { return true, nil }
	return ctrl.Result{}, wait.PollUntilContextTimeout(context.TODO(), time.Second, time.Minute, true, done) // want `is the context of wait.PollUntilContextTimeout`
}

func (r *reconciler) remove(ctx context.Context, pod *corev1.Pod) error { return r.Delete(ctx, pod) }

func do(_ context.Context, req *step.Request[*corev1.Pod]) error {
	return req.Client.Create(context.Background(), &corev1.Secret{}) // want `in a function that has one: name the parameter and pass it on`
}

func workflow(ctx context.Context, action ctrlkit.Action) (ctrl.Result, error) {
	return ctrlkit.IgnoreExit(action.Run(context.Background())) // want `is the context of action.Run`
}

// What follows is right.

func (r *reconciler) right(ctx context.Context, pod *corev1.Pod) error {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := r.Delete(detached, pod); err != nil {
		return err
	}
	defer r.remove(context.Background(), pod)
	defer func() {
		_ = r.Delete(context.Background(), pod)
	}()
	go func() { _ = r.Delete(context.Background(), pod) }()
	later := func() error { return r.Delete(context.Background(), pod) }
	start(context.Background(), later)                          // it outlives the function
	if err := r.Delete(context.Background(), pod); err != nil { //nolint:background // the lease must go
		return err
	}
	return r.Delete(ctx, pod)
}

func start(context.Context, func() error) {}

// shutDown runs when its context is done.
func (r *reconciler) shutDown(ctx context.Context, pod *corev1.Pod) error {
	<-ctx.Done()
	limited, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return r.Delete(limited, pod)
}

// withoutContext has none.
func (r *reconciler) withoutContext(pod *corev1.Pod) error {
	return r.Delete(context.Background(), pod)
}
