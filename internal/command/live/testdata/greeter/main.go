// Command greeter is the operator of the tests: for each Greeter it keeps one Job, and reports its
// state in the status.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	spawn := flag.String("spawn", "", "run this program beside the operator, which then ignores requests to end")
	crash := flag.Duration("crash", 0, "fail after this time")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(*spawn, *crash); err != nil {
		fmt.Fprintln(os.Stderr, "greeter:", err)
		os.Exit(3)
	}
}

func run(spawn string, crash time.Duration) error {
	ctx := ctrl.SetupSignalHandler()
	if spawn != "" {
		ctx = context.Background()
		if err := exec.Command("sh", "-c", spawn).Start(); err != nil {
			return err
		}
	}
	if crash > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, crash)
		defer cancel()
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(newGreeter()).Owns(&batchv1.Job{}).Named("greeter").Complete(&reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("it was asked to crash")
	}
	return nil
}

func newGreeter() *unstructured.Unstructured {
	greeter := &unstructured.Unstructured{}
	greeter.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.ctrlkit.dev", Version: "v1", Kind: "Greeter"})
	return greeter
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeter := newGreeter()
	if err := r.Get(ctx, request.NamespacedName, greeter); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: greeter.GetNamespace(), Name: greeter.GetName() + "-greeting"}}
	err := r.Get(ctx, client.ObjectKeyFromObject(job), job)
	if apierrors.IsNotFound(err) {
		job.Spec.Template.Spec = corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "greet", Image: "greeter"}},
		}
		if err = controllerutil.SetControllerReference(greeter, job, r.Scheme()); err == nil {
			err = r.Create(ctx, job)
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	phase := "Greeting"
	if job.Status.Succeeded > 0 {
		phase = "Greeted"
	}
	if now, _, _ := unstructured.NestedString(greeter.Object, "status", "phase"); now == phase {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(greeter.Object, phase, "status", "phase"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, greeter)
}
