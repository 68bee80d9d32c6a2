// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	plantest.Main(func(arguments []string) error { return operate(ctrl.SetupSignalHandler(), arguments) })
	os.Exit(m.Run())
}

// operate runs an operator that keeps a Deployment for each ConfigMap with the label app. arguments
// say what is special about this version of it.
func operate(ctx context.Context, arguments []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if slices.Contains(arguments, "calls-outside") {
		_, _ = http.Get("http://database.example.com/") //nolint:errcheck,bodyclose,noctx // it is refused
	}
	if slices.Contains(arguments, "executes") {
		if err := execute(ctx, config); err != nil {
			return err
		}
	}
	options := ctrl.Options{Metrics: server.Options{BindAddress: "0"}}
	if i := slices.Index(arguments, "elects-in"); i >= 0 {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "apps", arguments[i+1]
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	r := &apps{Client: mgr.GetClient(), arguments: arguments, mark: strings.ToLower(rand.Text())}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(r); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// execute asks for a command in the container of a Pod, and takes any answer.
func execute(ctx context.Context, config *rest.Config) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods := clients.CoreV1().Pods("default")
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	_ = clients.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(list.Items[0].Name).SubResource("exec").Do(ctx).Error() //nolint:errcheck // it is refused
	return nil
}

type apps struct {
	client.Client
	arguments []string
	mark      string // another one in each process
	turns     int
}

// flaps reports whether the operator writes to an app again and again. More than one would keep the
// others waiting: what is there at the start has a low priority.
func (r *apps) flaps(app *corev1.ConfigMap) bool {
	return slices.Contains(r.arguments, "flaps") && app.Name == "app-0"
}

func (r *apps) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil || app.Labels["app"] == "" || app.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if slices.Contains(r.arguments, "reads-secrets") {
		if err := r.List(ctx, &corev1.SecretList{}); err != nil {
			return ctrl.Result{}, err
		}
	}
	if slices.Contains(r.arguments, "keeps-passwords") {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
			secret.StringData = map[string]string{"password": app.Data["password"]}
			return controllerutil.SetControllerReference(app, secret, r.Scheme())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		labels := map[string]string{"name": app.Name}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		if len(d.Spec.Template.Spec.Containers) == 0 {
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app"}}
		}
		c := &d.Spec.Template.Spec.Containers[0]
		c.Image = app.Data["image"]
		if slices.Contains(r.arguments, "adds-a-variable") {
			c.Env = []corev1.EnvVar{{Name: "TZ", Value: "UTC"}}
		}
		if slices.Contains(r.arguments, "marks-its-start") {
			metav1.SetMetaDataLabel(&d.ObjectMeta, "mark", r.mark)
		}
		if r.flaps(app) {
			r.turns++
			d.Annotations = map[string]string{"turn": fmt.Sprint(r.turns % 2)}
		}
		return controllerutil.SetControllerReference(app, d, r.Scheme())
	})
	if apierrors.IsConflict(err) || r.flaps(app) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}
